# mixed.py LANGUAGE SECONDS: `calls` runs `outer` of another language within Python, which calls `inner`, and `own` works in
# Python itself, by turns. In Lua `inner` calls `called_back` of Python, too.
import ctypes
import ctypes.util
import sys
import time

PERL = b"""
    sub inner { my $n = 0; for my $i (1 .. 30000) { $n += $i % 7 } return $n }
    sub outer { my $n = 0; $n += inner() for 1 .. 20; return $n }
    outer();
"""

LUA = b"""
    if jit then jit.off() end
    function inner()
        local n = 0
        for i = 1, 200000 do n = n + i % 7 end
        called_back()
        return n
    end
    function outer()
        local n = 0
        for i = 1, 20 do n = n + inner() end
        return n
    end
    outer()
"""

LUA_GLOBALS = -10002


def perl():
    lib = ctypes.PyDLL(ctypes.util.find_library("perl"), mode=ctypes.RTLD_GLOBAL)
    lib.perl_alloc.restype = ctypes.c_void_p
    lib.Perl_eval_pv.restype = ctypes.c_void_p
    arguments = (ctypes.c_char_p * 4)(b"perl", b"-e", b"0", None)
    count, environment = ctypes.c_int(3), (ctypes.c_char_p * 1)(None)
    pointer = ctypes.POINTER(ctypes.c_char_p)
    all_arguments, all_environment = ctypes.cast(arguments, pointer), ctypes.cast(environment, pointer)
    lib.Perl_sys_init3(ctypes.byref(count), ctypes.byref(all_arguments), ctypes.byref(all_environment))
    interpreter = ctypes.c_void_p(lib.perl_alloc())
    lib.perl_construct(interpreter)
    assert lib.perl_parse(interpreter, None, 3, arguments, None) == 0
    lib.perl_run(interpreter)
    return lambda: lib.Perl_eval_pv(interpreter, PERL, 1)


def luajit():
    lib = ctypes.PyDLL(ctypes.util.find_library("luajit-5.1"), mode=ctypes.RTLD_GLOBAL)
    lib.luaL_newstate.restype = ctypes.c_void_p
    state = ctypes.c_void_p(lib.luaL_newstate())
    lib.luaL_openlibs(state)
    callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(called_back)
    lib.lua_pushcclosure(state, callback, 0)
    lib.lua_setfield(state, LUA_GLOBALS, b"called_back")

    def run():
        assert callback and lib.luaL_loadstring(state, LUA) == 0
        assert lib.lua_pcall(state, 0, 0, 0) == 0

    return run


def called_back(_):
    sum(i % 7 for i in range(4_000))
    return 0


def calls(run):
    run()


def own():
    return sum(i % 7 for i in range(300_000))


def main():
    run, end = {"perl": perl, "luajit": luajit}[sys.argv[1]](), time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        calls(run)
        own()


main()
