//! Compiles the messages of ../envoy without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../envoy/rls.proto");
    println!("cargo::rerun-if-changed=../envoy/health.proto");
    let files = protox::compile(["rls.proto", "health.proto"], ["../envoy"])?;
    tonic_prost_build::configure()
        .build_server(false)
        .compile_fds(files)?;
    Ok(())
}
