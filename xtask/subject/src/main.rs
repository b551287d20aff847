//! Compiles and runs a WebAssembly function, which takes a compiler and a runtime along.

use std::error::Error;

use wasmtime::{Engine, Instance, Module, Store};

const TRIPLE: &str = "(module (func (export \"triple\") (param i64) (result i64)
    local.get 0 i64.const 3 i64.mul))";

fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::default();
    let module = Module::new(&engine, TRIPLE)?;
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;
    let triple = instance.get_typed_func::<i64, i64>(&mut store, "triple")?;
    println!("{}", triple.call(&mut store, 14)?);
    Ok(())
}
