// main ROUNDS CALLS: nanoseconds a call, by turns, for each line of stdin.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/trace"
	"sort"
	"strconv"
	"time"

	"example.org/cost/cost"
)

type loop struct {
	name string
	run  func(calls int)
}

// Those that take so long that fewer calls are enough.
var slow = map[string]bool{"runtime/trace region, traced": true, "slog, JSON to io.Discard": true, "log.Printf to /dev/null": true}

var names = []string{"main", "worker-3", "acceptor", "0123456789abcdef"}

var sink int

var loops = []loop{
	{"loop", func(calls int) {
		for i := 0; i < calls; i++ {
			sink ^= i
		}
	}},
	{"an empty call of C", cost.Empty},
	{"Go: span, one tick", func(calls int) {
		for i := 0; i < calls; i++ {
			if cost.OnRequest() {
				cost.BeginRequest(cost.Request{Id: uint64(i), Kind: int32(i), Who: int32(i >> 1), A: uint64(i), B: uint64(i)})
			}
		}
	}},
	{"Go: text, no tick", func(calls int) {
		for i := 0; i < calls; i++ {
			if cost.OnNamed() {
				cost.WriteNamed(cost.Named{Kind: int32(i), Who: int32(i >> 1), A: uint64(i), B: uint64(i), Name: names[i&3]})
			}
		}
	}},
	{"Go: interval, two ticks", func(calls int) {
		for i := 0; i < calls; i++ {
			scope := cost.StartHandled()
			if scope.On() {
				scope.End(cost.Handled{Kind: int32(i), Who: int32(i >> 1), A: uint64(i), B: uint64(i)})
			}
		}
	}},
	{"Go: counter", func(calls int) {
		for i := 0; i < calls; i++ {
			cost.AddBytesIn(uint64(i))
		}
	}},
	{"C: span, one tick", cost.CRequest},
	{"C: text, no tick", cost.CNamed},
	{"C: interval, two ticks", cost.CHandled},
	{"C: counter", cost.CCounter},
	{"runtime/trace region, off", func(calls int) {
		ctx := context.Background()
		for i := 0; i < calls; i++ {
			trace.StartRegion(ctx, "cost").End()
		}
	}},
	{"runtime/trace region, traced", func(calls int) {
		if err := trace.Start(io.Discard); err != nil {
			panic(err)
		}
		defer trace.Stop()
		ctx := context.Background()
		for i := 0; i < calls; i++ {
			trace.StartRegion(ctx, "cost").End()
		}
	}},
	{"log.Printf to /dev/null", func(calls int) {
		for i := 0; i < calls; i++ {
			log.Printf("request %d %d", i, i>>1)
		}
	}},
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	calls, _ := strconv.Atoi(os.Args[2])
	// Package log does nothing at all if it writes to io.Discard.
	null, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	log.SetOutput(null)
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		measured := make([][]float64, len(loops))
		// The first round warms the caches.
		for round := 0; round <= rounds; round++ {
			for i, each := range loops {
				calls := calls
				if slow[each.name] {
					calls = (calls + 19) / 20
				}
				start := time.Now()
				each.run(calls)
				if ns := float64(time.Since(start).Nanoseconds()) / float64(calls); round > 0 {
					measured[i] = append(measured[i], ns)
				}
			}
		}
		for i, all := range measured {
			sort.Float64s(all)
			fmt.Printf("%s\t%g\t%g\n", loops[i].name, all[0], all[len(all)/2])
		}
		fmt.Println("done")
	}
}
