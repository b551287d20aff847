// rooted.js SECONDS: start -> outer -> inner, which burns some milliseconds and sleeps for two in turn.
const cell = new Int32Array(new SharedArrayBuffer(4));

function inner(end) {
    let x = 1;
    while (Date.now() < end) {
        for (let i = 0; i < 3000000; i++) {
            x = (x * 31 + i) | 0;
        }
        Atomics.wait(cell, 0, 0, 2);
    }
    return x;
}

function outer(end) {
    return inner(end) + 1;
}

function start() {
    require('fs').writeSync(1, 'ready\n');
    return outer(Date.now() + Number(process.argv[2]) * 1000) + 1;
}

start();
