//! User functions that would run for hours: each request gets an error, other requests are served, and the server can stop.

use std::sync::Arc;
use std::time::Duration;

use ilion_env::MemEnv;
use ilion_protocol::{ErrorDetail, Version};

use crate::client::error_of;
use crate::{make_table, run, start_with};

/// Bodies that spend their time in the library of Lua, where Lua itself counts no instructions.
const BODIES: [&str; 4] = [
    "local a, b, t = ('x'):rep(2000000) .. 'a', ('x'):rep(2000000) .. 'b', {} for i = 1, 60000, 2 do t[i] = a t[i + 1] = b end table.sort(t) return 1",
    "while true do local s = ('x'):rep(100000) for w in s:gmatch('.-.-.-.-y') do end end",
    "local s, t = ('x'):rep(1000000), {} for i = 1, 8000 do t[i] = s end while true do string.format(('%.0s'):rep(8000), table.unpack(t)) end",
    "local a, b = ('\\0'):rep(4000000), ('\\0'):rep(4000001) while a < b do end return 1",
];
/// More than the threads for statements that may take long.
const CLIENTS: usize = 12;

#[test]
fn functions_that_would_run_for_hours_stop_neither_other_statements_nor_the_server() {
    let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
        settings.user_defined_functions_fail_timeout = Duration::from_millis(50);
    });
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    for (index, body) in BODIES.iter().enumerate() {
        run(
            &mut client,
            &format!(
                "CREATE FUNCTION ks.f{index} (k int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS $$ {body} $$"
            ),
        );
    }
    std::thread::scope(|scope| {
        for index in 0..CLIENTS {
            let mut client = setup.client(Version::V5);
            scope.spawn(move || {
                let answer = client.query(&format!("SELECT ks.f{}(k) FROM ks.t", index % BODIES.len()));
                let error = error_of(answer);
                let failed = matches!(error.detail, ErrorDetail::FunctionFailure { .. });
                assert!(failed, "{error}");
            });
        }
    });
    run(&mut client, "SELECT * FROM ks.t");
    setup.server.stop(Duration::from_secs(600));
}
