func ppt_hash(data unsafe.Pointer, length int) uint64 {
	return 0
}

func ppt_hash_u64(number uint64) uint64 {
	return 0
}

func ppt_hash128(data unsafe.Pointer, length int) (none [16]byte) {
	return none
}
