// choosing_main.c in Go, where a block is what stands behind the question whether a frame is wanted.
package main

import (
	"fmt"
	"strconv"

	"program/choosing"
)

var ran [7]int

// Counts what is wanted.
func counted(form int, wanted bool) bool {
	if wanted {
		ran[form]++
	}
	return wanted
}

func round(n uint64) {
	if counted(0, choosing.OnPlain()) {
		choosing.WritePlain(choosing.Plain{N: n})
	}
	if counted(1, choosing.OnStamped()) {
		choosing.WriteStamped(choosing.Stamped{N: n, When: choosing.NOW})
	}
	if counted(2, choosing.OnJob()) {
		choosing.BeginJob(choosing.Job{Id: n})
	}
	for _, step := range []choosing.LegStep{choosing.LegStepLeave, choosing.LegStepArrive} {
		if counted(3, choosing.OnLeg()) {
			choosing.StepLeg(step, choosing.Leg{Id: n})
		}
	}
	if counted(2, choosing.OnJob()) {
		choosing.EndJob(choosing.Job{Id: n})
	}
	held := choosing.StartSlot()
	if counted(4, held.On()) {
		held.End(choosing.Slot{Name: "go"})
	}
	choosing.AddBytes(1)
	choosing.ObserveWaits(5)
}

func main() {
	n := uint64(0)
	fmt.Println("ready")
	for text := line(); text != ""; text = line() {
		rounds, _ := strconv.Atoi(text)
		ran = [7]int{}
		for i := 0; i < rounds; i++ {
			n++
			round(n)
		}
		fmt.Print("ran")
		for _, count := range ran {
			fmt.Print(" ", count)
		}
		fmt.Println()
	}
}
