// Nanoseconds as seconds and what is left, in a unit of nanoseconds.
func ppt_time(ns, unit int64) [2]int64 {
	if ns == NOW {
		return [2]int64{NOW, 0}
	}
	seconds, rest := ns/1e9, ns%1e9
	if rest < 0 {
		seconds, rest = seconds-1, rest+1e9
	}
	return [2]int64{seconds, rest / unit}
}

// As much of a text as fits, cut between characters.
func ppt_text(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for end := bytes; end > bytes-utf8.UTFMax && end >= 0; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end]
		}
	}
	return text[:bytes]
}
