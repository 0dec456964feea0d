/** The options by which one kind of log gets a field; a field that it cannot have has none. */
interface LogOptions {
  /** Names the option for a header, by its name in lower case. */
  readonly header?: ((name: string) => string) | undefined
  readonly cookie?: ((name: string) => string) | undefined
  readonly duration?: string | undefined
  readonly host?: string | undefined
}

const ofGateway: LogOptions = {
  header: () => 'let the gateway write this log with accessLog: { replay: digest }',
  cookie: () => 'let the gateway write this log with accessLog: { replay: digest }',
}
const ofTemplates: LogOptions = {
  header: name => `${added(`$http_${name.replaceAll('-', '_')}`, `%{${name}}i`)}`,
  cookie: name => `${added(`$cookie_${name}`, `%{${name}}C`)}`,
  duration: added('$request_time', '%D'),
  host: added('$host', '%v'),
}

/** The options of each kind of log, by the beginning of its name; those of nginx and Apache for all others. */
const options: readonly (readonly [format: string, LogOptions])[] = [
  ['diana with replay', {}],
  ['diana', ofGateway],
  [
    'apache',
    {
      header: name => apache(`%{${name}}i`),
      cookie: name => apache(`%{${name}}C`),
      duration: apache('%D'),
      host: apache('%v'),
    },
  ],
  ['caddy', { cookie: () => "let Caddy's log keep the header Cookie: no filter may delete it" }],
  [
    'traefik json',
    {
      header: name => `set accessLog.fields.headers.names.${name}: keep in Traefik`,
      cookie: () => 'set accessLog.fields.headers.names.Cookie: keep in Traefik',
    },
  ],
  [
    'traefik',
    {
      header: name =>
        `let Traefik write JSON (accessLog.format: json) with accessLog.fields.headers.names.${name}: keep`,
      cookie: () => 'let Traefik write JSON (accessLog.format: json) with accessLog.fields.headers.names.Cookie: keep',
      host: 'let Traefik write JSON (accessLog.format: json)',
    },
  ],
  [
    'haproxy',
    {
      // the log names no header that it has captured
      duration: 'write the timers with option httplog',
    },
  ],
  [
    'envoy',
    {
      header: name => `write the access log as json_format with "%REQ(${name.toUpperCase()})%", and say --fields`,
      cookie: () => 'write the access log as json_format with "%REQ(COOKIE)%", and say --fields',
    },
  ],
  [
    'w3c',
    {
      header: name => `add cs(${name}) to the fields of the log`,
      cookie: () => 'add cs(Cookie) to the fields of the log',
      duration: 'add time-taken to the fields of the log',
      host: 'add cs-host to the fields of the log',
    },
  ],
  ['alb', {}],
  [
    'json by --fields',
    {
      header: name => `say where it is: --fields …,header:${name}=NAME`,
      cookie: () => 'say where it is: --fields …,header:cookie=NAME',
      duration: 'say where it is: --fields …,duration.ms=NAME',
      host: 'say where it is: --fields …,host=NAME',
    },
  ],
]

/** Says how a log of this format gets the fields that a rule needs, so that it can be judged. */
export function remedyFor(missing: readonly string[], format: string): string {
  const names = missing.flatMap(one => one.split(' or '))
  const named = (kind: string): string | undefined =>
    names.find(name => name.startsWith(`${kind}:`))?.slice(kind.length + 1)
  const { header, cookie, duration, host } = options.find(([name]) => format.startsWith(name))?.[1] ?? ofTemplates
  const [headerName, cookieName] = [named('header'), named('cookie')]
  if (names.includes('body')) return 'no log has bodies: try the rule in shadow, or with diana test'
  const found =
    (names.includes('duration') ? duration : undefined) ??
    (headerName === undefined ? undefined : header?.(headerName)) ??
    (cookieName === undefined ? undefined : cookie?.(cookieName)) ??
    (names.includes('host') ? host : undefined)
  if (found !== undefined) return found
  if (format.startsWith('diana')) {
    return format === 'diana'
      ? ofGateway.header!('')
      : 'the application gives it, and no log has it: try the rule in shadow'
  }
  return 'let the gateway write its access log with accessLog: { replay: digest }, or say --user-as if it is the user of the log'
}

function added(nginx: string, apacheName: string): string {
  return `add "${nginx}" to log_format (Apache: ${apacheName}), and say --format`
}

function apache(name: string): string {
  return `add "${name}" to LogFormat, and say --format`
}
