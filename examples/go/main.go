// server serve PORT: a shop that tells prices and takes orders.
// server visit PORT CUSTOMERS REQUESTS: customers, each of whom asks for one thing at a time.
package main

import (
	"fmt"
	"os"
	"strconv"
)

//go:generate pptc -o work/shop shop.frame

func main() {
	var numbers []int
	for _, word := range os.Args[min(2, len(os.Args)):] {
		number, err := strconv.Atoi(word)
		if err != nil {
			fail(err)
		}
		numbers = append(numbers, number)
	}
	switch {
	case len(numbers) == 1 && os.Args[1] == "serve":
		fail(serve(numbers[0]))
	case len(numbers) == 3 && os.Args[1] == "visit":
		answers, err := visit(numbers[0], numbers[1], numbers[2])
		if err != nil {
			fail(err)
		}
		fmt.Printf("answers %d\n", answers)
	default:
		fail(fmt.Errorf("usage: server serve PORT | server visit PORT CUSTOMERS REQUESTS"))
	}
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "server:", err)
	os.Exit(1)
}
