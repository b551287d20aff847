// jitted.js CPU_SECONDS: fib and the loop around it, interpreted first and optimised soon.
function fib(n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function spin(end) {
    let sum = 0;
    while (process.cpuUsage().user / 1e6 < end) {
        sum += fib(20);
    }
    return sum;
}

process.exitCode = spin(Number(process.argv[2])) > 0 ? 0 : 1;
