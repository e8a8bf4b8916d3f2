    // ---- ppt for Java: the part that is the same in every package ----------------------------

    /** Reads words of the control page as they are now: no compiler moves such a read out of a loop. */
    private static final java.lang.invoke.VarHandle WORD =
        java.lang.invoke.MethodHandles.byteBufferViewVarHandle(
            long[].class, java.nio.ByteOrder.nativeOrder());

    /** Words of the control page: the gate, and what a session does not want. */
    private static final java.nio.ByteBuffer GATE;
    private static final java.nio.ByteBuffer DISABLED;
    private static final java.nio.ByteBuffer DISABLED_BY;
    private static final java.nio.ByteBuffer SESSION;

    /** Why the library could not be loaded; null if it could. */
    static final java.lang.Throwable FAILURE;
    /** Whether the library is there, and something is compiled in. */
    static final boolean PRESENT;

    static {
        java.nio.ByteBuffer[] page = new java.nio.ByteBuffer[4];
        java.lang.Throwable failure = null;
        try {
            load();
            for (int part = 0; part < page.length; part++)
                page[part] = page(part);
        } catch (java.lang.Throwable thrown) {
            failure = thrown;
            warn(thrown);
        }
        FAILURE = failure;
        PRESENT = failure == null && page[0] != null;
        GATE = orZeros(PRESENT ? page[0] : null);
        DISABLED = orZeros(page[1]);
        DISABLED_BY = orZeros(page[2]);
        SESSION = orZeros(page[3]);
    }

    private PptRuntime() {
    }

    /** Where nothing is compiled in, and without the library, nobody is ever attached. */
    private static java.nio.ByteBuffer orZeros(java.nio.ByteBuffer page) {
        return page != null ? page : java.nio.ByteBuffer.allocateDirect(64);
    }

    private static void warn(java.lang.Throwable thrown) {
        try {
            java.lang.String what = "buffer " + BUFFER + " writes no frames: ";
            if (thrown instanceof java.lang.UnsatisfiedLinkError
                    && java.lang.String.valueOf(thrown.getMessage()).contains("page_"))
                what += "the library is not of these classes; build both from one frame file. ";
            java.lang.System.getLogger("ppt").log(
                java.lang.System.Logger.Level.WARNING, what + thrown);
        } catch (java.lang.Throwable ignored) {
            // A program goes on without its log, too.
        }
    }

    /** Loads the library: the file that a property names, the one beside this class, or by its name. */
    private static void load() throws java.io.IOException {
        java.lang.String path = java.lang.System.getProperty("ppt.library." + BUFFER);
        if (path == null)
            path = java.lang.System.getProperty("ppt.library");
        if (path != null) {
            loadFile(new java.io.File(path).getAbsoluteFile());
            return;
        }
        java.lang.String file = java.lang.System.mapLibraryName(LIBRARY);
        try (java.io.InputStream packed = PptRuntime.class.getResourceAsStream(file)) {
            if (packed != null) {
                loadCopy(packed);
                return;
            }
        }
        java.lang.String folders = java.lang.System.getProperty("java.library.path", "");
        for (java.lang.String folder : folders.split(java.io.File.pathSeparator)) {
            java.io.File found = new java.io.File(folder, file).getAbsoluteFile();
            if (found.isFile()) {
                loadFile(found);
                return;
            }
        }
        java.lang.System.loadLibrary(LIBRARY);
    }

    /** A file belongs to one class loader; the next one gets a copy. */
    private static void loadFile(java.io.File file) throws java.io.IOException {
        try {
            java.lang.System.load(file.getPath());
        } catch (java.lang.UnsatisfiedLinkError error) {
            if (!java.lang.String.valueOf(error.getMessage()).contains("another classloader"))
                throw error;
            try (java.io.InputStream original = new java.io.FileInputStream(file)) {
                loadCopy(original);
            }
        }
    }

    private static void loadCopy(java.io.InputStream from) throws java.io.IOException {
        java.nio.file.Path copy = java.nio.file.Files.createTempFile("ppt-", ".so");
        try {
            java.nio.file.Files.copy(
                from, copy, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
            java.lang.System.load(copy.toAbsolutePath().toString());
        } finally {
            java.nio.file.Files.deleteIfExists(copy);
        }
    }

    /** Whether somebody is attached: a load and a branch. */
    static boolean isOn() {
        return (long) WORD.getOpaque(GATE, 0) != 0;
    }

    /** Whether somebody is attached who wants what has this bit: a load and a branch while nobody is. */
    static boolean isWanted(int bit) {
        return (long) WORD.getOpaque(GATE, 0) != 0 && isEnabled(bit);
    }

    /** The bits of an earlier session do not count. */
    private static boolean isEnabled(int bit) {
        long disabled = (long) WORD.getOpaque(DISABLED, bit / 64 * 8);
        return (disabled >>> bit % 64 & 1) == 0
            || (long) WORD.getOpaque(DISABLED_BY, 0) != (long) WORD.getOpaque(SESSION, 0);
    }

    /** An enum of the frame file. */
    interface Numbered {
        long number();
    }

    static long[] numbers(Numbered[] values) {
        if (values == null)
            return null;
        long[] numbers = new long[values.length];
        for (int i = 0; i < numbers.length; i++)
            numbers[i] = values[i] == null ? 0 : values[i].number();
        return numbers;
    }

    // What does not fit its field is an error of the caller, while somebody is attached.

    static int fits(int value, int min, int max, java.lang.String field) {
        if (value < min || value > max)
            throw doesNotFit(value, field);
        return value;
    }

    static long fits(long value, long min, long max, java.lang.String field) {
        if (value < min || value > max)
            throw doesNotFit(value, field);
        return value;
    }

    private static java.lang.IllegalArgumentException doesNotFit(
            long value, java.lang.String field) {
        return new java.lang.IllegalArgumentException(field + ": " + value + " does not fit");
    }

    static int[] fit(int[] values, int min, int max, java.lang.String field) {
        if (values != null)
            for (int value : values)
                fits(value, min, max, field);
        return values;
    }

    static long[] fit(long[] values, long min, long max, java.lang.String field) {
        if (values != null)
            for (long value : values)
                fits(value, min, max, field);
        return values;
    }

    /** An array has the length of its field, or is null. */
    static void has(int elements, int needed, java.lang.String field) {
        if (elements != needed)
            throw new java.lang.IllegalArgumentException(
                field + ": " + needed + " elements are needed, not " + elements);
    }

    // Words of what is no single number: word i of a text, of bytes, of an array; 0 behind the end.

    /** Negative if one of its characters is not ASCII. */
    static long ascii(java.lang.String text, int i) {
        if (text == null)
            return 0;
        long word = 0;
        int all = 0;
        for (int at = java.lang.Math.min(text.length(), i * 8 + 8) - 1; at >= i * 8; at--) {
            char one = text.charAt(at);
            all |= one;
            word = word << 8 | one;
        }
        return all < 0x80 ? word : -1;
    }

    /** As many whole characters as fit, in UTF-8. Half a character of UTF-16 becomes U+FFFD. */
    static byte[] utf8(java.lang.String text, int bytes) {
        byte[] to = new byte[bytes];
        for (int at = 0, i = 0; i < text.length();) {
            int one = text.codePointAt(i);
            i += java.lang.Character.charCount(one);
            if (one >= 0xd800 && one < 0xe000)
                one = 0xfffd;
            int more = one < 0x80 ? 0 : one < 0x800 ? 1 : one < 0x10000 ? 2 : 3;
            if (at + more >= bytes)
                break;
            to[at++] = (byte) (more == 0 ? one : 0xf80 >> more | one >> 6 * more);
            while (more-- > 0)
                to[at++] = (byte) (0x80 | one >> 6 * more & 0x3f);
        }
        return to;
    }

    static void put(java.lang.String text, int bytes, long[] to, int at, int words) {
        long all = 0;
        for (int i = 0; i < words; i++)
            all |= to[at + i] = ascii(text, i);
        if (all < 0)
            put(utf8(text, bytes), to, at, words);
    }

    static long word(byte[] bytes, int i) {
        if (bytes == null)
            return 0;
        long word = 0;
        for (int at = java.lang.Math.min(bytes.length, i * 8 + 8) - 1; at >= i * 8; at--)
            word = word << 8 | bytes[at] & 0xff;
        return word;
    }

    static void put(byte[] bytes, long[] to, int at, int words) {
        for (int i = 0; i < words; i++)
            to[at + i] = word(bytes, i);
    }

    /** Of elements of `size` bytes. */
    static long word(int[] values, int size, int i) {
        if (values == null)
            return 0;
        long word = 0;
        int first = i * (8 / size);
        for (int at = java.lang.Math.min(values.length, first + 8 / size) - 1; at >= first; at--)
            word = word << 8 * size | values[at] & 0xffffffffL >>> 32 - 8 * size;
        return word;
    }

    static void put(int[] values, int size, long[] to, int at, int words) {
        for (int i = 0; i < words; i++)
            to[at + i] = word(values, size, i);
    }

    static long word(long[] values, int size, int i) {
        if (values == null)
            return 0;
        if (size == 8)
            return values[i];
        long word = 0;
        int first = i * (8 / size);
        for (int at = java.lang.Math.min(values.length, first + 8 / size) - 1; at >= first; at--)
            word = word << 8 * size | values[at] & -1L >>> 64 - 8 * size;
        return word;
    }

    static void put(long[] values, int size, long[] to, int at, int words) {
        for (int i = 0; i < words; i++)
            to[at + i] = word(values, size, i);
    }

    static long word(boolean[] values, int i) {
        if (values == null)
            return 0;
        long word = 0;
        for (int at = java.lang.Math.min(values.length, i * 8 + 8) - 1; at >= i * 8; at--)
            word = word << 8 | (values[at] ? 1 : 0);
        return word;
    }

    static void put(boolean[] values, long[] to, int at, int words) {
        for (int i = 0; i < words; i++)
            to[at + i] = word(values, i);
    }

    static long word(float[] values, int i) {
        if (values == null)
            return 0;
        long word = java.lang.Float.floatToRawIntBits(values[2 * i]) & 0xffffffffL;
        if (2 * i + 1 < values.length)
            word |= (long) java.lang.Float.floatToRawIntBits(values[2 * i + 1]) << 32;
        return word;
    }

    static void put(float[] values, long[] to, int at, int words) {
        for (int i = 0; i < words; i++)
            to[at + i] = word(values, i);
    }

    static long word(double[] values, int i) {
        return values == null ? 0 : java.lang.Double.doubleToRawLongBits(values[i]);
    }

    static void put(double[] values, long[] to, int at, int words) {
        for (int i = 0; i < words; i++)
            to[at + i] = word(values, i);
    }
