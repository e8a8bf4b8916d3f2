// ---- ppt for Go: the part that is the same in every package -----------------------------------

// NOW stands for the time of the write in a field that can be stamped: the clock is then read by the
// call that writes the frame.
const NOW = -1 << 63

// Where the control page has, in words: the gate, the session's claim, and what it does not want.
const (
	ppt_gate        = 0
	ppt_claim       = 13
	ppt_disabled_by = 20
	ppt_disabled    = 21
)

func ppt_on() bool {
	return atomic.LoadUint64(&ppt_page[ppt_gate]) != 0
}

// The bits of an earlier session do not count.
func ppt_enabled(bit uint) bool {
	return atomic.LoadUint64(&ppt_page[ppt_disabled+bit/64])>>(bit%64)&1 == 0 ||
		atomic.LoadUint64(&ppt_page[ppt_disabled_by]) != atomic.LoadUint64(&ppt_page[ppt_claim])
}

// On reports whether somebody is attached: a load and a branch.
func On() bool {
	return ppt_on()
}

// Prepare does the slow work of the first frame of the thread that runs this goroutine in advance.
func Prepare() {
	if ppt_on() {
		ppt_prepare()
	}
}

// AllowAttach lets every process of this user attach, even if Yama allows only ancestors.
func AllowAttach() {
	ppt_allow_attach()
}
