// ---- ppt for Node: the part that is the same in every package ---------------------------------

// The addon: beside this file, or where node-gyp builds it. A program runs on without it.
let ppt_native = null;
let ppt_failure = null;
try {
    let ppt_path = ppt_node_path.join(__dirname, `${PPT_ADDON}.node`);
    if (!ppt_fs.existsSync(ppt_path))
        ppt_path = ppt_node_path.join(__dirname, 'build', 'Release', `${PPT_ADDON}.node`);
    const ppt_loaded = require(ppt_path);
    if (!(PPT_MADE in ppt_loaded))
        throw new Error(`${ppt_path} is not of this index.js: build both from one frame file`);
    ppt_native = ppt_loaded;
} catch (ppt_error) {
    ppt_failure = ppt_error;
    process.emitWarning(`buffer ${PPT_BUFFER} writes no frames: ${ppt_error.message}`, 'PptWarning');
}

// Where nothing is compiled in, and without the addon, nobody is ever attached.
const PPT_PRESENT = ppt_native !== null && ppt_native.page !== undefined;
// The control page: the gate, and what a session does not want.
const ppt_page = new Int32Array(PPT_PRESENT ? ppt_native.page : 4096);
const PPT_GATE = 1, PPT_CLAIM = 26, PPT_DISABLED_BY = 40, PPT_DISABLED = 42;

// Where a frame lies when C is called: what ppt sets, then the frame as C has it.
const ppt_area = PPT_PRESENT ? ppt_native.area : new ArrayBuffer(PPT_AREA);
const ppt_i8 = new Int8Array(ppt_area), ppt_u8 = new Uint8Array(ppt_area);
const ppt_i16 = new Int16Array(ppt_area), ppt_u16 = new Uint16Array(ppt_area);
const ppt_i32 = new Int32Array(ppt_area), ppt_u32 = new Uint32Array(ppt_area);
const ppt_f32 = new Float32Array(ppt_area), ppt_f64 = new Float64Array(ppt_area);
const ppt_i64 = new BigInt64Array(ppt_area), ppt_u64 = new BigUint64Array(ppt_area);
// Of ppt_i32: the own stamp of a frame, its mark, and a bit for each field that C stamps.
const PPT_AT = 0, PPT_MARK = 4, PPT_STAMPED = 6;

/** Stands for the time of the call in a field that can be stamped. */
const ppt_NOW = Symbol('ppt.NOW');

/** Whether somebody is attached who wants what has this bit: a load and a branch while nobody is. */
function ppt_wanted(bit) {
    return ppt_page[PPT_GATE] !== 0 && ppt_enabled(bit);
}

/** The bits of an earlier session do not count. */
function ppt_enabled(bit) {
    return (ppt_page[PPT_DISABLED + (bit >> 5)] >>> (bit & 31) & 1) === 0
        || ppt_page[PPT_DISABLED_BY] !== ppt_page[PPT_CLAIM]
        || ppt_page[PPT_DISABLED_BY + 1] !== ppt_page[PPT_CLAIM + 1];
}

// What does not fit its field is an error of the caller, while somebody is attached.

function ppt_kind(value) {
    if (value === null)
        return 'null';
    const kind = Array.isArray(value) ? 'array' : typeof value;
    return kind === 'undefined' ? kind : (/^[aeiou]/.test(kind) ? 'an ' : 'a ') + kind;
}

function ppt_wrong(place, needed, value) {
    return new TypeError(`${place}: ${needed} is needed, not ${ppt_kind(value)}`);
}

function ppt_does_not_fit(place, value) {
    return new RangeError(`${place}: ${value} does not fit`);
}

/** An integer that is not just a number that fits. */
function ppt_integer(value, min, max, place) {
    if (value === undefined || value === null)
        return 0;
    if (typeof value !== 'number' && typeof value !== 'bigint')
        throw ppt_wrong(place, 'a number', value);
    if (!(value >= min && value <= max) || Number(value) !== Math.floor(Number(value)))
        throw ppt_does_not_fit(place, value);
    return Number(value);
}

// Each stores a value at an index of its array.

function ppt_put_i8(at, value, place) {
    ppt_i8[at] = typeof value === 'number' && value << 24 >> 24 === value
        ? value : ppt_integer(value, -128, 127, place);
}

function ppt_put_u8(at, value, place) {
    ppt_u8[at] = typeof value === 'number' && (value & 255) === value
        ? value : ppt_integer(value, 0, 255, place);
}

function ppt_put_i16(at, value, place) {
    ppt_i16[at] = typeof value === 'number' && value << 16 >> 16 === value
        ? value : ppt_integer(value, -32768, 32767, place);
}

function ppt_put_u16(at, value, place) {
    ppt_u16[at] = typeof value === 'number' && (value & 65535) === value
        ? value : ppt_integer(value, 0, 65535, place);
}

function ppt_put_i32(at, value, place) {
    ppt_i32[at] = typeof value === 'number' && (value | 0) === value
        ? value : ppt_integer(value, -2147483648, 2147483647, place);
}

function ppt_put_u32(at, value, place) {
    ppt_u32[at] = typeof value === 'number' && value >>> 0 === value
        ? value : ppt_integer(value, 0, 4294967295, place);
}

/** The halves of an integer that a number has exactly. */
function ppt_put_exact(at, value) {
    ppt_i32[at] = value;
    ppt_i32[at + 1] = Math.floor(value / 4294967296);
}

function ppt_put_i64(at, value, place) {
    if (typeof value === 'number' && (value | 0) === value) {
        ppt_i32[at] = value;
        ppt_i32[at + 1] = value >> 31;
    } else {
        ppt_put_large_i64(at, value, place);
    }
}

function ppt_put_u64(at, value, place) {
    if (typeof value === 'number' && value >>> 0 === value) {
        ppt_u32[at] = value;
        ppt_u32[at + 1] = 0;
    } else {
        ppt_put_large_u64(at, value, place);
    }
}

function ppt_put_large_i64(at, value, place) {
    if (typeof value === 'number' && Number.isSafeInteger(value))
        ppt_put_exact(at, value);
    else if (typeof value === 'bigint' && BigInt.asIntN(64, value) === value)
        ppt_i64[at >> 1] = value;
    else
        ppt_put_no_64(at, value, place);
}

function ppt_put_large_u64(at, value, place) {
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0)
        ppt_put_exact(at, value);
    else if (typeof value === 'bigint' && BigInt.asUintN(64, value) === value)
        ppt_u64[at >> 1] = value;
    else
        ppt_put_no_64(at, value, place);
}

function ppt_put_no_64(at, value, place) {
    if (value !== undefined && value !== null) {
        if (typeof value !== 'number' && typeof value !== 'bigint')
            throw ppt_wrong(place, 'a number or a bigint', value);
        const unsafe = Number.isInteger(value) && !Number.isSafeInteger(value);
        throw unsafe
            ? new RangeError(`${place}: ${value} is not exact as a number: give a bigint`)
            : ppt_does_not_fit(place, value);
    }
    ppt_put_exact(at, 0);
}

function ppt_put_f32(at, value, place) {
    ppt_f32[at] = typeof value === 'number' ? value : ppt_float(value, place);
}

function ppt_put_f64(at, value, place) {
    ppt_f64[at] = typeof value === 'number' ? value : ppt_float(value, place);
}

function ppt_float(value, place) {
    if (value === undefined || value === null)
        return 0;
    throw ppt_wrong(place, 'a number', value);
}

function ppt_put_bool(at, value, place) {
    if (typeof value !== 'boolean' && value !== undefined && value !== null)
        throw ppt_wrong(place, 'a boolean', value);
    ppt_u8[at] = value ? 1 : 0;
}

/** Nanoseconds as seconds, and what is left in a unit of nanoseconds. */
function ppt_put_time(at, value, unit, place) {
    let seconds, rest;
    if (typeof value === 'number' && Number.isSafeInteger(value)) {
        rest = value % 1e9;
        rest += rest < 0 ? 1e9 : 0;
        seconds = (value - rest) / 1e9;
    } else if (typeof value === 'bigint' && BigInt.asIntN(64, value) === value) {
        rest = Number(value % 1000000000n);
        rest += rest < 0 ? 1e9 : 0;
        seconds = Number((value - BigInt(rest)) / 1000000000n);
    } else {
        ppt_put_no_64(at, value, place);
        seconds = rest = 0;
    }
    ppt_put_exact(at, seconds);
    ppt_put_exact(at + 2, Math.floor(rest / unit));
}

function ppt_put_timeval(at, value, place) {
    ppt_put_time(at, value, 1000, place);
}

function ppt_put_timespec(at, value, place) {
    ppt_put_time(at, value, 1, place);
}

/** As many whole characters as fit, in UTF-8, and zeros. */
function ppt_put_text(at, bytes, value, place) {
    if (value === undefined || value === null)
        value = '';
    else if (typeof value !== 'string')
        throw ppt_wrong(place, 'a string', value);
    const end = at + bytes;
    const length = value.length < bytes ? value.length : bytes;
    for (let i = 0; i < length; i++, at++) {
        const one = value.charCodeAt(i);
        if (one > 127) {
            at = ppt_put_utf8(at, end, value, i);
            break;
        }
        ppt_u8[at] = one;
    }
    while (at < end)
        ppt_u8[at++] = 0;
}

/** From a character on that is not ASCII. Half a character of UTF-16 becomes U+FFFD. */
function ppt_put_utf8(at, end, text, i) {
    while (i < text.length) {
        let one = text.codePointAt(i);
        i += one > 0xffff ? 2 : 1;
        if (one >= 0xd800 && one < 0xe000)
            one = 0xfffd;
        let more = one < 0x80 ? 0 : one < 0x800 ? 1 : one < 0x10000 ? 2 : 3;
        if (at + more >= end)
            break;
        ppt_u8[at++] = more === 0 ? one : 0xf80 >> more | one >> 6 * more;
        while (more-- > 0)
            ppt_u8[at++] = 0x80 | one >> 6 * more & 0x3f;
    }
    return at;
}

// What a program gives may run code of the program as it is read: a getter, a Proxy. That code may write a frame into
// the same area. So a view and an array are read before anything is stored, and what these return runs no code.

const ppt_length = Function.prototype.call.bind(
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), 'length').get);

function ppt_bytes(value, place) {
    if (!ArrayBuffer.isView(value))
        throw ppt_wrong(place, 'a Uint8Array', value);
    return value instanceof Uint8Array
        ? value : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

function ppt_bytes_or_null(value, place) {
    return value === undefined || value === null ? null : ppt_bytes(value, place);
}

/** An array has the length of its field, or is none: then its elements are 0. */
function ppt_elements(value, count, place) {
    if (value === undefined || value === null)
        return null;
    const view = ArrayBuffer.isView(value);
    if (view ? !('length' in value) : !Array.isArray(value))
        throw ppt_wrong(place, 'an array', value);
    const length = value.length;
    if (length !== count)
        throw new RangeError(`${place}: ${count} elements are needed, not ${length}`);
    if (view)
        return value;
    const elements = new Array(count);
    for (let i = 0; i < count; i++)
        elements[i] = value[i];
    return elements;
}

/** As many bytes as fit, and zeros. */
function ppt_put_bytes(at, bytes, from) {
    const given = from === null ? 0 : ppt_length(from);
    let length = given < bytes ? given : bytes;
    for (let i = 0; i < length; i++)
        ppt_u8[at + i] = from[i];
    for (; length < bytes; length++)
        ppt_u8[at + length] = 0;
}

function ppt_put_array(put, at, stride, count, elements, place) {
    for (let i = 0; i < count; i++)
        put(at + i * stride, elements === null ? null : elements[i], place);
}

/** What a step or an amount is: there is no default. */
function ppt_needed(value, place) {
    if (value === undefined || value === null)
        throw new TypeError(`${place}: ${value} is none`);
    return value;
}

/** The fields that a function makes; null: no frame after all. */
function ppt_made(make, names, place) {
    const fields = make();
    if (fields === null)
        return null;
    if (typeof fields !== 'object')
        throw new TypeError(`${place}: the function returns no object with the fields`);
    for (const name in fields)
        if (!names.has(name))
            throw new TypeError(`${place}: there is no field ${name}`);
    return fields;
}
