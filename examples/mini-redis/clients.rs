//! Clients of mini-redis: `clients ADDRESS CONNECTIONS REQUESTS`. Each connection sends its share of the
//! requests, half SETs, half GETs, one after the other. Prints how many were answered as they should be.

use mini_redis::client;

#[tokio::main]
async fn main() -> mini_redis::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: clients ADDRESS CONNECTIONS REQUESTS");
    let (address, connections): (String, u64) = (next()?, next()?.parse()?);
    let each = next()?.parse::<u64>()? / connections;
    let tasks: Vec<_> = (0..connections).map(|n| tokio::spawn(ask(address.clone(), n, each))).collect();
    let mut answered = 0;
    for task in tasks {
        answered += task.await??;
    }
    println!("answered {}", answered);
    Ok(())
}

async fn ask(address: String, connection: u64, requests: u64) -> mini_redis::Result<u64> {
    let mut client = client::connect(address).await?;
    let mut answered = 0;
    for n in 0..requests {
        let (key, value) = (format!("key:{}:{}", connection, n / 2 % 100), format!("value {}", n / 2));
        match n % 2 {
            0 => client.set(&key, value.into()).await?,
            _ if client.get(&key).await?.as_deref() != Some(value.as_bytes()) => continue,
            _ => {}
        }
        answered += 1;
    }
    Ok(answered)
}
