//! host PLUGIN: loads a library that writes frames, and unloads it while a thread that wrote frames
//! continues.
#![deny(warnings)]

use std::ffi::CString;
use std::sync::Barrier;

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let name = CString::new(path.as_str()).unwrap();
    // SAFETY: our own library, whose function takes a number.
    let (library, write) = unsafe {
        let library = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null());
        let symbol = libc::dlsym(library, c"write_frames".as_ptr());
        (library, std::mem::transmute::<*mut libc::c_void, extern "C" fn(i32)>(symbol))
    };
    app::serve(|| {
        let (wrote, unloaded) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                write(1000);
                wrote.wait();
                unloaded.wait();
            });
            wrote.wait();
            // SAFETY: no code of the library runs now or later.
            assert_eq!(unsafe { libc::dlclose(library) }, 0);
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            assert!(!maps.contains(&path), "still mapped");
            unloaded.wait();
        });
        1000
    });
}
