/* Hashes of what the program has, for fields of types `hash` and `hash128`. Of a long array, the
 * collector keeps its hands off for the time of the hash; a short one is copied. */
typedef struct pptjni_view {
    jbyte copy[512];
    void *bytes;
    jsize length;
} pptjni_view;

PPT_JNI int pptjni_open(JNIEnv *env, jbyteArray data, pptjni_view *view) {
    view->length = (*env)->GetArrayLength(env, data);
    view->bytes = view->copy;
    if (view->length <= (jsize)sizeof view->copy)
        (*env)->GetByteArrayRegion(env, data, 0, view->length, view->copy);
    else
        view->bytes = (*env)->GetPrimitiveArrayCritical(env, data, 0);
    return view->bytes != 0;
}

PPT_JNI void pptjni_close(JNIEnv *env, jbyteArray data, pptjni_view *view) {
    if (view->bytes != view->copy)
        (*env)->ReleasePrimitiveArrayCritical(env, data, view->bytes, JNI_ABORT);
}
