<?php
// What `script.php` includes.
spin(1);
if (!function_exists("included")) {
    function included() { spin(1); }
}
included();
