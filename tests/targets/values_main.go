// values THREADS ROUNDS: values_main.c in Go. Each thread is that of a goroutine, and ends with it.
package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"program/clocks"
	"program/values"
)

var singles = [8]float32{
	float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1)),
	math.SmallestNonzeroFloat32, math.MaxFloat32, 0.1, 16777216,
}
var doubles = [8]float64{
	math.Float64frombits(0x7ff8 << 48), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), // C's NaN
	math.SmallestNonzeroFloat64, math.MaxFloat64, 0.1, 9007199254740992,
}

func tv(seconds, micros int) int64 {
	return int64(seconds)*1e9 + int64(micros)*1e3
}

func every(thread, i int) {
	f := values.Every{
		Thread: int32(thread), I: int32(i), A: int8(i * 3), B: uint8(i * 5), C: int16(i * 257),
		D: uint16(i * 263), E: int32(-i), F: 4000000000 + uint32(i), G: -5000000000 * int64(i),
		H: math.MaxUint64 - uint64(i), X: float32(i) * 0.25, Y: float64(i) / 3, Even: i%2 == 0,
		Took: 1000000007 * time.Duration(i), When: tv(1000000000+i, i%1000000),
		Wide: values.WideHigh, Name: fmt.Sprintf("t%d-%d", thread, i),
		Raw: [5]byte{byte(i), 1, 2, 255}, Three: [3]int16{int16(i), int16(-i), 7},
		Pair: [2]float64{float64(i), -0.5}, Stamps: [2]int64{tv(i, 5)},
	}
	switch i % 3 {
	case 1:
		f.Small = values.SmallSome
	case 2:
		f.Small = 9
	}
	if i%2 == 0 {
		f.Wide, f.Text = values.WideLow, "tab\there, back\\slash, \x1b[31m"
	}
	values.WriteEvery(f)
}

func odd(thread, i int) {
	f := values.Odd{
		Thread: int32(thread), I: int32(i), F: singles[i%8], D: doubles[i%8],
		Cut: "é€😀", Control: "a\tb\n\\\x01",
		List: [3]values.Small{values.SmallNone, values.SmallMany, values.Small(i)},
		Most: math.MaxUint64 - uint64(thread), Least: math.MinInt64 + int64(i),
		Spans:   [2]time.Duration{time.Duration(-i), math.MaxInt64},
		AtStart: tv(i+1, 1), AtEnd: tv(i+2, 999999),
	}
	for bit := range f.Flags {
		f.Flags[bit] = i>>bit&1 != 0
	}
	values.WriteOdd(f)
}

func one(thread, i int) {
	every(thread, i)
	values.WriteLittle(values.Little{Thread: int32(thread), I: int32(i), N: uint16(i * 7)})
	odd(thread, i)
	clocks.WriteTick(clocks.Tick{
		Thread: int32(thread), I: int32(i), Real: int64(i)*1e9 + int64(i%1000000000),
	})
}

func main() {
	threads, _ := strconv.Atoi(os.Args[1])
	rounds, _ := strconv.Atoi(os.Args[2])
	fmt.Println("ready")
	line()
	var all sync.WaitGroup
	for thread := 0; thread < threads; thread++ {
		all.Add(1)
		go func(thread int) {
			defer all.Done()
			runtime.LockOSThread()
			for i := 0; i < rounds; i++ {
				one(thread, i)
			}
		}(thread)
	}
	all.Wait()
	fmt.Println("written", 4*threads*rounds)
	rest()
}
