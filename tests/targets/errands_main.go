// errands THREADS ROUNDS: errands_main.c in Go, each goroutine on a thread of its own.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"

	"program/errands"
)

func id(thread, i int) uint64 {
	return uint64(thread)<<32 | uint64(i)
}

func takeIn(thread, i int) {
	t := int32(thread)
	verb := errands.VerbGet
	if i%2 == 1 {
		verb = errands.VerbPut
	}
	errands.BeginErrand(errands.ErrandBegin{Id: id(thread, i), Thread: t, Verb: verb})
	errands.StepLeg(errands.LegStepLeave, errands.Leg{Id: id(thread, i), Thread: t})
	name := fmt.Sprintf("%d-%d", thread, i)
	errands.BeginVisit(errands.Visit{Name: name, Thread: t, When: int64(1000 + i)})
}

func done(thread, of, i int) {
	t := int32(thread)
	if errands.OnLeg() {
		errands.StepLeg(errands.LegStepPass, errands.Leg{Id: id(of, i), Thread: t})
	}
	errands.StepLeg(2, errands.Leg{Id: id(of, i), Thread: t})
	name := fmt.Sprintf("%d-%d", of, i)
	errands.EndVisit(errands.Visit{Name: name, Thread: t, When: int64(2000 + i)})
	errands.EndErrand(errands.ErrandEnd{Id: id(of, i), Thread: t, Bytes: uint32(i * 7)})
}

func main() {
	threads, _ := strconv.Atoi(os.Args[1])
	rounds, _ := strconv.Atoi(os.Args[2])
	if errands.ErrandEdgeEnd != 1 {
		panic("an end is 1")
	}
	fmt.Println("ready")
	line()
	var begun, all sync.WaitGroup
	begun.Add(threads)
	all.Add(threads)
	for thread := 0; thread < threads; thread++ {
		go func(thread int) {
			defer all.Done()
			runtime.LockOSThread()
			for i := 0; i < rounds; i++ {
				takeIn(thread, i)
			}
			begun.Done()
			begun.Wait()
			for i := 0; i < rounds; i++ {
				done(thread, (thread+threads-1)%threads, i)
			}
			errands.WriteIdle(errands.Idle{Thread: int32(thread)})
		}(thread)
	}
	all.Wait()
	fmt.Println("written", threads*(7*rounds+1))
	rest()
}
