const vitest = 'node_modules/vitest/vitest.mjs'
const tests = (...files) => [vitest, 'run', ...files, '--testTimeout=600000']

/**
 * The commands that `npm run long` and `npm run write` find by name. `run` is what node is started with, in the root of the
 * repository; `needs` names the npm script that comes first. Arguments after the name are passed on.
 */
export const commands = {
  long: {
    tests: {
      about: 'all tests, the random ones with ten times as many steps',
      takes: 'minutes',
      run: tests(),
      env: { DIANA_TEST_RUNS: '10' },
    },
    coverage: {
      about: 'the tests that need nothing but Node, with a table of the lines that they run',
      takes: 'minutes',
      run: ['scripts/fast-tests.mjs', '--coverage'],
    },
    packages: {
      about: 'packs the packages and uses them with TypeScript, Jest, esbuild, webpack',
      takes: '2 min',
      run: ['test/consumers/run.mjs'],
    },
    size: {
      about:
        'the library on disk, at its start and in a bundle, beside express-rate-limit, with marks; --write updates docs/packages.md',
      takes: '1 min',
      run: ['scripts/size.mjs'],
      needs: 'build',
    },
    dashboard: {
      about: 'the tests of the dashboard, with more typing on a slowed processor',
      takes: 'minutes',
      run: tests('test/browser'),
      env: { DIANA_DASHBOARD_LONG: '1' },
    },
    walk: {
      about:
        '100,000 random steps on memory and Redis (or --on ledgers), which must give the same answers; --api: through the public API',
      takes: '2 min',
      run: ['test/walk/run.mjs'],
    },
    postgres: {
      about:
        'the store of docs/extending.md on a PostgreSQL: the published suite, and processes of which one is killed',
      takes: '1 min',
      run: ['test/postgres/run.mjs'],
    },
    'walk-fleet': {
      about: 'random fleets of processes and outages, in virtual time',
      takes: '> 7 min',
      run: tests(
        'packages/limiter/src/stores/failover/fleet-scenes.test.ts',
        'packages/limiter/src/stores/failover/restart-scenes.test.ts',
        'packages/limiter/src/stores/leases/lease-scenes.test.ts',
        'packages/limiter/src/stores/leases/lease-walk.test.ts',
      ),
      env: { FLEET_SCENES: '200' },
    },
    prove: {
      about: 'every state of the model of a fleet, for 2 and 3 processes; faults of before must be found',
      takes: '10 min',
      run: ['model/prove.mjs'],
    },
    reserve: {
      about: 'five processes reserve and settle calls of unknown cost on one Redis, and one is killed',
      takes: '10 s',
      run: ['test/reserve/run.mjs'],
    },
    bounds: {
      about: '100,000 random schedules for each of 200 rule sets, which must not exceed what diana bound says',
      takes: '5 h',
      run: tests('packages/gateway/src/rehearsal/bounds/bounds.test.ts'),
      env: { DIANA_BOUND_SETS: '200', DIANA_BOUND_SCHEDULES: '100000' },
    },
    accuracy: {
      about: 'how exact limits are; --write updates docs/accuracy.md',
      takes: 'minutes',
      run: ['test/accuracy/run.mjs'],
    },
    simulate: {
      about:
        'fleets in virtual time: recovery (reconnecting to Redis), leases (--write updates docs/scale.md) or overload (an adaptive limit)',
      takes: '1 min',
      run: ['test/simulate/run.mjs'],
    },
    chaos: {
      about: 'faults of Redis, measured; --write updates docs/reliability.md',
      takes: 'minutes',
      run: ['test/chaos/run.mjs'],
    },
    'chaos-restart': {
      about:
        'who is refused when Redis is restarted empty; --write updates docs/reliability.md, --virtual simulates it',
      takes: '4 min',
      run: ['test/chaos/restart-table.mjs'],
    },
    'chaos-gateways': {
      about: 'faults of Redis under three gateways with two workers each',
      takes: '4 min',
      run: ['test/chaos/gateways.mjs'],
    },
    soak: {
      about: 'full speed with random faults of Redis; --minutes says for how long',
      takes: '10 min',
      run: ['test/chaos/soak.mjs'],
    },
    restarts: {
      about: 'reloads, replaces and stops a gateway under load',
      takes: '3 min',
      run: ['test/restarts/run.mjs'],
    },
    fuzz: {
      about:
        "random bytes to the gateway, from its services, and to the ports of diana serve and the admin API; an error of Diana's own is a finding",
      takes: '10 min',
      run: ['test/fuzz/run.mjs'],
    },
    attack: {
      about: 'attacks on the gateway, and their effect on well-behaved callers',
      takes: '3 min',
      run: ['test/fuzz/attack.mjs'],
    },
    odd: {
      about:
        'requests that proxies let through and Diana refuses, behind nginx, Caddy and HAProxy; odd messages over gRPC and SPOE',
      takes: '30 s',
      run: tests('test/serve/odd-requests.test.ts', 'test/serve/odd-messages.test.ts'),
      env: { ODD_REQUESTS: '3000' },
    },
    streams: {
      about: '10,000 idle event streams and WebSockets through one gateway: memory, and the cost of other calls',
      takes: 'minutes',
      run: ['test/streams/run.mjs'],
    },
    client: {
      about: 'up to 50 clients of diana-limiter/client against limits of Diana, and as of GitHub, OpenAI and Shopify',
      takes: '2 min',
      run: ['test/client/table.mjs'],
      needs: 'build',
    },
    messages: {
      about:
        'what limits on messages of WebSockets cost, with a mark, and floods of ws and Socket.IO beside other connections',
      takes: '30 s',
      run: ['test/messages/run.mjs'],
      needs: 'build',
    },
    clients: {
      about: 'git, curl, browsers, nginx and others through the gateway',
      takes: '20 s',
      run: ['test/clients/run.mjs'],
    },
    paths: {
      about: 'random spellings of paths against nginx, Express, Fastify, Node, and the routers behind every filter',
      takes: '30 s',
      run: ['test/paths/run.mjs'],
    },
    'replay-equality': {
      about: 'sends calls through a gateway, replays its log, and compares call by call; --calls says how many',
      takes: '10 s',
      run: ['test/replay/equality.mjs'],
      needs: 'build',
    },
    'replay-bounds': {
      about: 'judges random calls by more than 1,000 random rule sets, exactly and with moments cut to seconds',
      takes: '30 s',
      run: tests('packages/gateway/src/replay/judging/bounds.test.ts'),
      env: { REPLAY_RULE_SETS: '1500' },
    },
    costs: {
      about:
        'streams of 1 MB through a gateway that settles their costs, and through one that does not: throughput and memory',
      takes: '3 min',
      run: ['bench/costs/run.mjs'],
      needs: 'build',
    },
    ceiling: {
      about: 'how many calls a second Redis can count for one rule',
      takes: '15 s',
      run: ['bench/ceiling.mjs'],
      needs: 'build',
    },
  },
  write: {
    api: {
      about: 'the lists of exported names and types in test/api',
      takes: 'seconds',
      run: [vitest, 'run', 'test/api.test.ts', '--update=all'],
      needs: 'build',
    },
    schema: {
      about: 'docs/diana.schema.json, the JSON Schema of the rule file',
      takes: 'seconds',
      run: ['scripts/write-schema.mjs'],
      needs: 'build',
    },
    screenshots: {
      about: 'the pictures in docs/images, from a gateway that runs',
      takes: '8 min',
      run: ['scripts/screenshots.mjs'],
      needs: 'build',
    },
  },
}

/** Returns the names of a kind with a sentence and a time each. */
export function listOf(kind) {
  const rows = Object.entries(commands[kind])
  const width = Math.max(...rows.map(([name]) => name.length))
  return [
    `usage: npm run ${kind} -- NAME [ARGUMENTS OF THAT COMMAND]`,
    '',
    ...rows.map(([name, { about, takes }]) => `  ${name.padEnd(width)}  ${takes.padEnd(7)}  ${about}`),
  ].join('\n')
}

/** Returns the sentence for a name that does not exist, with the nearest name if one is near. */
export function unknownName(kind, name) {
  const near = Object.keys(commands[kind])
    .map(known => ({ known, far: known.startsWith(name) || name.startsWith(known) ? 2 : distance(known, name) }))
    .toSorted((one, two) => one.far - two.far)[0]
  const hint =
    near.far <= Math.max(2, name.length / 3) ? `did you mean ${near.known}?` : `npm run ${kind} lists the names`
  return `There is no command "${name}" of npm run ${kind}: ${hint}`
}

/** Counts the letters to insert, remove or replace to make one word of the other. */
function distance(one, two) {
  let row = [...Array(two.length + 1).keys()]
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1]
    for (let to = 0; to < two.length; to++) {
      next.push(Math.min(row[to] + (letter === two[to] ? 0 : 1), row[to + 1] + 1, next[to] + 1))
    }
    row = next
  }
  return row[two.length]
}
