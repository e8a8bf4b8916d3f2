// relay ROUNDS: relay_main.c in Go.
package main

import (
	"fmt"
	"os"
	"strconv"

	"program/relay"
)

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	fmt.Println("ready")
	line()
	for i := 0; i < rounds; i++ {
		text := fmt.Sprintf("message %d", i)
		number := relay.HashU64(uint64(i))
		relay.WriteSent(relay.Sent{Id: number, When: int64(1000 + i)})
		relay.WriteReceived(relay.Received{Id: number, Body: relay.Hash128([]byte(text)), Number: uint32(i)})
		relay.WritePassed(relay.Passed{Ticket: uint64(i), Body: relay.Hash128(text)})
	}
	fmt.Println("written", 3*rounds)
	rest()
}
