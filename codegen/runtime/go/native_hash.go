// No pointer is kept. A pointer to bytes says that what they lie in needs no look for other pointers.
func ppt_hash(data unsafe.Pointer, length int) uint64 {
	return uint64(C.pptgo_hash((*C.char)(data), C.size_t(length)))
}

func ppt_hash_u64(number uint64) uint64 {
	return uint64(C.pptgo_hash_u64(C.uint64_t(number)))
}

func ppt_hash128(data unsafe.Pointer, length int) [16]byte {
	hash := C.pptgo_hash128((*C.char)(data), C.size_t(length))
	return *(*[16]byte)(unsafe.Pointer(&hash.bytes))
}
