//! Hosts via ssh: the test's own server on the loopback, with its own keys and files.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use libtest_mimic::Trial;

use crate::kills::Marker;
use crate::rig::{Rig, RigResult, contains, same, skip, trial};

pub(crate) fn tests() -> Vec<Trial> {
    vec![trial("ssh::a_host_via_ssh", via_ssh)]
}

/// A server that ends with the test.
struct SshServer(Child);

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Path) -> Option<(SshServer, u16)> {
    let sshd =
        ["/usr/sbin/sshd", "/usr/bin/sshd"].into_iter().find(|text| Path::new(text).exists())?;
    for key in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
        keygen.status().ok().filter(|status| status.success())?;
    }
    fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
    // Another process may take the port between its choice and its use.
    for _ in 0..20 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nAuthorizedKeysFile \
             {0}/authorized\nPidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
             PermitRootLogin yes\n",
            folder.display()
        );
        fs::write(folder.join("sshd.conf"), text).unwrap();
        let mut server = Command::new(sshd);
        server.args(["-D", "-e", "-f"]).arg(folder.join("sshd.conf"));
        let log = fs::File::create(folder.join("sshd.log")).unwrap();
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut server = SshServer(server.spawn().ok()?);
        while server.0.try_wait().unwrap().is_none() {
            let listens = fs::read_to_string(folder.join("sshd.log")).unwrap();
            if listens.contains("Server listening")
                && TcpStream::connect(("127.0.0.1", port)).is_ok()
            {
                return Some((server, port));
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    None
}

fn via_ssh() -> RigResult {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // sshd requires this as root.
    let _ = fs::create_dir_all("/run/sshd");
    let Some((_server, port)) = serve(folder.path()) else {
        let log = fs::read_to_string(folder.path().join("sshd.log")).unwrap_or_default();
        return skip(&format!("no sshd that runs here: {log}"));
    };
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap().trim().to_owned();
    let text = format!(
        "Host remote\nHostName 127.0.0.1\nPort {port}\nUser {user}\nIdentityFile {0}/user\n\
         IdentitiesOnly yes\nUserKnownHostsFile {0}/known\nStrictHostKeyChecking accept-new\n",
        folder.path().display()
    );
    fs::write(folder.path().join("config"), text).unwrap();
    let marker = Marker::new();
    let mut rig = Rig::new(&format!(
        r#"
name = "ssh"
host.here = {{ via = "local" }}
host.there = {{ via = "ssh:remote", helper = "OWN", addr = "127.0.0.1" }}
[[phase]]
name = "start"
there = {{ start = ["OWN", "program", "stubborn"], ready = "running", env = {{ LAB_TEST = "{}" }} }}
[[phase]]
name = "write"
all = {{ run = ["OWN", "program", "write", "x.txt", "{{host}}; $(id)"], collect = "x.txt" }}
"#,
        marker.0
    ));
    rig.options.ssh = vec!["ssh".into(), "-F".into(), folder.path().join("config").into()];
    let manifest = rig.passes();
    same(&rig.read("r1/there/x.txt"), "there; $(id)")?;
    same(&rig.read("r1/here/x.txt"), "here; $(id)")?;
    assert_eq!(manifest.hosts[0].facts.boot_id, manifest.hosts[1].facts.boot_id);
    marker.is_gone()?;
    // Without the key the host is unreachable; the message of ssh is reported.
    fs::write(folder.path().join("authorized"), "").unwrap();
    rig.options.folder = Some(rig.folder.path().join("refused"));
    let error = rig.run().unwrap_err().to_string();
    contains(&error, "phase setup: host there has gone: ")?;
    contains(&error, "Permission denied")?;
    Ok(())
}
