import { departure } from './scripts.mjs'

const command = (...words) => `*${words.length}\r\n${words.map(word => `$${word.length}\r\n${word}\r\n`).join('')}`
const numbers = ['0', '1', '-1', '15', '60', '99999999999', '1e3', 'NaN', '', ' 1', '2147483647']

const throttle = random =>
  command(
    random.pick(['CL.THROTTLE', 'cl.throttle']),
    random.pick(['k', 'a:b', '', '{a}', random.bytes(random.int(0, 40))]),
    ...random.list(random.int(0, 6), () => random.pick(numbers)),
  )

const byRule = random =>
  command(
    random.pick(['DIANA.CHECK', 'DIANA.PEEK', 'DIANA.TAKE', 'DIANA.RESET']),
    random.pick(['all', 'none', 'cl-throttle', '__proto__', '', random.bytes(random.int(0, 300))]),
    ...random.list(random.int(0, 8), () => random.pick(['ann', ...numbers])),
  )

const other = random =>
  random.pick([
    ...[command('HELLO', random.pick(['2', '3', '4', 'x'])), command('HELLO', '3', 'SETNAME', 'a')],
    ...[
      command('COMMAND', random.pick(['DOCS', 'COUNT', 'INFO', 'x'])),
      command('INFO'),
      command('CONFIG', 'GET', '*'),
    ],
    ...[
      command('RESET'),
      command('CLIENT', random.pick(['ID', 'SETNAME', 'LIST'])),
      command('AUTH', 'x'),
      command('SELECT', '1'),
    ],
    ...['PING\r\n', 'PING "a', "ECHO 'b' \\\n", '\r\n\r\n', '*0\r\n', '*-1\r\n'],
  ])

/** Lengths that are announced, and not what follows. */
const broken = random =>
  `*${random.pick(['1', '2', '1024', '1025', '-5', '', 'x', '99999999999999'])}\r\n` +
  `$${random.pick(['1', '65536', '65537', '-1', '', '4294967296'])}\r\n${random.bytes(random.int(0, 30))}`

/** Commands of clients of Redis, of which some are cut, broken or unknown. */
export function respCommands(random) {
  const commands = random.list(random.pick([1, 3, 20, 200, 2000]), () =>
    random.weighted([
      [8, () => throttle(random)],
      [6, () => byRule(random)],
      [4, () => other(random)],
      [0.1, () => broken(random)],
      [0.1, () => random.bytes(random.int(1, 100))],
      [0.1, () => command('ECHO', 'e'.repeat(random.pick([1000, 60_000])))],
    ])(),
  )
  const text = commands.join('')
  const cut = random.chance(0.5) ? text.length : random.int(1, text.length)
  return {
    requests: commands.length,
    steps: [
      { write: text.slice(0, cut) },
      { pause: random.int(0, 20) },
      { write: text.slice(cut) },
      ...departure(random),
    ],
  }
}
