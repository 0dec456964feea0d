import { cpuUsage, memoryUsage, pid, uptime } from 'node:process'
import { version as dianaVersion } from '../../version.ts'
import { type Asked, failureOf, type RespLimits } from './resp-limits.ts'
import { Failure, ok, type Reply, type RespVersion, Status } from './resp-reply.ts'
import type { RespUser, RespUsers } from './resp-users.ts'

/** One connection, as far as its commands read and change it. */
export interface RespClient {
  readonly id: number
  version: RespVersion
  /** Undefined until the client has said who it is. */
  user: RespUser | undefined
  name: string
  isLeaving: boolean
  wrongPasswords: number
}

export interface RespParts {
  readonly limits: RespLimits
  readonly users: RespUsers
  readonly connections: () => number
}

type Answer = Reply | Promise<Reply>
type Run = (client: RespClient, words: readonly string[], parts: RespParts) => Answer

interface Command {
  readonly run: Run
  /** The least and the most words, the command among them. */
  readonly words: readonly [least: number, most: number]
  /** A sentence on what it does, as COMMAND DOCS says it. */
  readonly about: string
  readonly usage: string
  /** True if a client that has not said who it is may send it. */
  readonly isOpen?: true
}

const anyNumber = 1024
/** The number of wrong passwords after which a connection is closed. */
export const mostGuesses = 5
/** Clients of Redis ask for its version, and choose by it what they send. */
const redisVersion = '7.0.0'
const largest = 2 ** 31 - 1

const commands: Readonly<Record<string, Command>> = {
  'CL.THROTTLE': {
    words: [5, 6],
    usage: 'key max_burst count period [quantity]',
    about: 'Counts a call of a key by a limit of its own: count calls in period seconds, and max_burst more at once.',
    run: throttle,
  },
  'DIANA.CHECK': {
    words: [2, anyNumber],
    usage: 'rule [value …] [cost]',
    about:
      'Decides by a rule of the rule file, and counts. A caller is named by a value for each dimension of the rule.',
    run: (client, words, parts) => byRule(client, words, parts, asked => parts.limits.take(asked, false)),
  },
  'DIANA.PEEK': {
    words: [2, anyNumber],
    usage: 'rule [value …] [cost]',
    about: 'Answers as DIANA.CHECK would, and counts nothing.',
    run: (client, words, parts) => byRule(client, words, parts, asked => parts.limits.take(asked, true)),
  },
  'DIANA.TAKE': {
    words: [2, anyNumber],
    usage: 'rule [value …] cost [rule [value …] cost …]',
    about:
      'Decides by several rules together: all of them count, or, if one refuses, none. The sixth answer is that rule.',
    run: takeAll,
  },
  'DIANA.RESET': {
    words: [2, anyNumber],
    usage: 'rule [value …]',
    about: 'Forgets what a rule has counted for a caller.',
    run: reset,
  },
  PING: {
    words: [1, 2],
    usage: '[message]',
    about: 'Answers PONG, or the message.',
    run: (_, [, message]) => message ?? new Status('PONG'),
  },
  ECHO: { words: [2, 2], usage: 'message', about: 'Answers the message.', run: (_, [, message]) => message! },
  AUTH: { words: [2, 3], usage: '[user] password', about: 'Says who the client is.', run: authenticate, isOpen: true },
  HELLO: {
    words: [1, anyNumber],
    usage: '[version [AUTH user password] [SETNAME name]]',
    about: 'Chooses the version of the protocol, 2 or 3.',
    run: hello,
    isOpen: true,
  },
  SELECT: {
    words: [2, 2],
    usage: 'database',
    about: 'Chooses a database; there is one, 0.',
    run: (_, [, index]) => (index === '0' ? ok : new Failure('ERR DB index is out of range: there is one database, 0')),
  },
  CLIENT: { words: [2, anyNumber], usage: 'subcommand', about: 'Names of connections.', run: clientCommand },
  COMMAND: { words: [1, anyNumber], usage: '[subcommand]', about: 'Lists the commands.', run: listCommands },
  CONFIG: {
    words: [2, anyNumber],
    usage: 'GET name',
    about: 'Answers what tools ask for before they begin.',
    run: configure,
  },
  INFO: { words: [1, anyNumber], usage: '[section …]', about: 'Says what this server is, in lines.', run: inform },
  RESET: { words: [1, 1], usage: '', about: 'Makes the connection as good as new.', run: startAgain, isOpen: true },
  QUIT: {
    words: [1, anyNumber],
    usage: '',
    about: 'Closes the connection.',
    isOpen: true,
    run: client => {
      client.isLeaving = true
      return ok
    },
  },
}

/** Names in lower case, as most clients send them, and in capitals. */
const byName: ReadonlyMap<string, Command> = new Map(
  Object.entries(commands).flatMap(([name, command]) => [
    [name, command],
    [name.toLowerCase(), command],
  ]),
)

/** True if there is a command of this name. */
export function isCommand(name: string): boolean {
  return byName.has(name) || byName.has(name.toUpperCase())
}

/** Runs a command; whatever is wrong with it is its own answer. */
export function runCommand(client: RespClient, words: readonly string[], parts: RespParts): Answer {
  const name = words[0]!
  const command = byName.get(name) ?? byName.get(name.toUpperCase())
  if (client.user === undefined && command?.isOpen !== true) return new Failure('NOAUTH Authentication required.')
  if (command === undefined)
    return new Failure(`ERR unknown command '${shown(name)}'; COMMAND DOCS lists those there are`)
  if (words.length < command.words[0] || words.length > command.words[1]) {
    return new Failure(`ERR wrong number of arguments: ${name.toUpperCase()} ${command.usage}`)
  }
  try {
    const answer = command.run(client, words, parts)
    return answer instanceof Promise ? answer.catch(failureOf) : answer
  } catch (error) {
    return failureOf(error)
  }
}

function throttle(client: RespClient, words: readonly string[], { limits }: RespParts): Answer {
  if (!client.user!.mayThrottle) return noPermission(client, 'CL.THROTTLE')
  const [burst, count, period, quantity] = [words[2]!, words[3]!, words[4]!, words[5] ?? '1'].map(numberOf)
  if (burst === undefined || burst > 1e9 - 1) return wrong('max_burst', 'a whole number from 0 to 999999999')
  if (count === undefined || count === 0) return wrong('count', 'a whole number of 1 or more')
  if (period === undefined || period === 0) return wrong('period', 'seconds, a whole number of 1 or more')
  if (quantity === undefined) return wrong('quantity', 'a whole number of 0 or more')
  return limits.throttle(words[1]!, { burst, count, period }, quantity)
}

function byRule(
  client: RespClient,
  words: readonly string[],
  { limits }: RespParts,
  decide: (asked: Asked) => Answer,
): Answer {
  const rule = words[1]!
  if (!client.user!.mayUse(rule)) return noPermission(client, rule)
  const size = limits.valuesOf(rule)
  const values = words.slice(2, 2 + size)
  const rest = words.slice(2 + size)
  if (values.length < size || rest.length > 1) return wrongCaller(rule, size)
  const cost = numberOf(rest[0] ?? '1')
  return cost === undefined ? wrong('cost', 'a whole number of 0 or more') : decide({ rule, values, cost })
}

function takeAll(client: RespClient, words: readonly string[], { limits }: RespParts): Answer {
  const asked: Asked[] = []
  for (let at = 1; at < words.length; ) {
    const rule = words[at]!
    if (!client.user!.mayUse(rule)) return noPermission(client, rule)
    const size = limits.valuesOf(rule)
    const values = words.slice(at + 1, at + 1 + size)
    if (values.length < size) return wrongCaller(rule, size)
    // the last cost may be left out
    const cost = numberOf(words[at + 1 + size] ?? '1')
    if (cost === undefined) return wrong('cost', 'a whole number of 0 or more')
    asked.push({ rule, values, cost })
    at += size + 2
  }
  return limits.takeAll(asked)
}

function reset(client: RespClient, words: readonly string[], { limits }: RespParts): Answer {
  const rule = words[1]!
  if (!client.user!.mayUse(rule)) return noPermission(client, rule)
  const size = limits.valuesOf(rule)
  if (words.length !== 2 + size) return wrongCaller(rule, size)
  return limits.reset(rule, words.slice(2)).then(() => ok)
}

function authenticate(client: RespClient, words: readonly string[], { users }: RespParts): Answer {
  const [name, password] = words.length === 3 ? [words[1]!, words[2]!] : ['default', words[1]!]
  if (!users.areAsked) return new Failure('ERR no users are set: this server needs no password')
  const user = users.find(name, password)
  if (user !== undefined) {
    client.user = user
    return ok
  }
  client.wrongPasswords++
  if (client.wrongPasswords >= mostGuesses) client.isLeaving = true
  return new Failure('WRONGPASS invalid username-password pair or user is disabled.')
}

function hello(client: RespClient, words: readonly string[], parts: RespParts): Answer {
  const version = words[1] === undefined ? client.version : numberOf(words[1])
  if (version !== 2 && version !== 3) return new Failure('NOPROTO unsupported protocol version')
  let name: string | undefined
  for (let at = 2; at < words.length; ) {
    const option = words[at]!.toUpperCase()
    if (option === 'AUTH' && at + 2 < words.length) {
      const answer = authenticate(client, ['AUTH', words[at + 1]!, words[at + 2]!], parts)
      if (answer !== ok) return answer
      at += 3
    } else if (option === 'SETNAME' && at + 1 < words.length) {
      name = words[at + 1]!
      if (!isClientName(name)) return wrongClientName
      at += 2
    } else return new Failure(`ERR syntax error in HELLO option '${shown(words[at]!)}'`)
  }
  if (client.user === undefined) {
    return new Failure('NOAUTH HELLO must be called with the client already authenticated, or with AUTH user password')
  }
  client.version = version
  if (name !== undefined) client.name = name.slice(0, longestName)
  return new Map<string, Reply>([
    ['server', 'diana'],
    ['version', redisVersion],
    ['proto', version],
    ['id', client.id],
    ['mode', 'standalone'],
    ['role', 'master'],
    ['modules', []],
  ])
}

function startAgain(client: RespClient, _: readonly string[], { users }: RespParts): Answer {
  client.version = 2
  client.name = ''
  client.user = users.ofNobody
  return new Status('RESET')
}

function clientCommand(client: RespClient, words: readonly string[]): Answer {
  const subcommand = words[1]!.toUpperCase()
  if (subcommand === 'GETNAME') return client.name === '' ? null : client.name
  if (subcommand === 'ID') return client.id
  if (subcommand === 'SETINFO') return ok
  if (subcommand === 'SETNAME' && words.length === 3) {
    if (!isClientName(words[2]!)) return wrongClientName
    client.name = words[2]!.slice(0, longestName)
    return ok
  }
  return new Failure(`ERR unknown subcommand '${shown(words[1]!)}'. There are GETNAME, ID, SETINFO and SETNAME.`)
}

const longestName = 100
const wrongClientName = new Failure('ERR Client names cannot contain spaces, newlines or special characters.')

function isClientName(name: string): boolean {
  return /^[!-~]*$/.test(name)
}

function listCommands(_: RespClient, words: readonly string[]): Answer {
  const subcommand = words[1]?.toUpperCase()
  const names = words.slice(2).map(name => name.toUpperCase())
  const listed = Object.entries(commands).filter(([name]) => names.length === 0 || names.includes(name))
  if (subcommand === 'COUNT') return Object.keys(commands).length
  if (subcommand === 'LIST') return Object.keys(commands).map(name => name.toLowerCase())
  if (subcommand === 'DOCS') return new Map(listed.map(([name, command]) => [name.toLowerCase(), docsOf(command)]))
  if (subcommand === undefined) return listed.map(describe)
  if (subcommand === 'INFO' && names.length === 0) return listed.map(describe)
  if (subcommand === 'INFO') return names.map(name => (commands[name] ? describe([name, commands[name]]) : null))
  return new Failure(`ERR unknown subcommand '${shown(words[1]!)}'. There are COUNT, DOCS, INFO and LIST.`)
}

/** Returns the name, the number of words, its flags, and that no word is a key of a Redis Cluster. */
function describe([name, { words }]: readonly [string, Command]): Reply {
  const [least, most] = words
  return [name.toLowerCase(), least === most ? least : -least, [new Status('fast')], 0, 0, 0]
}

function docsOf({ about, usage }: Command): Reply {
  return new Map<string, Reply>([
    ['summary', usage === '' ? about : `${usage}: ${about}`],
    ['since', '0.2.0'],
    ['group', 'generic'],
  ])
}

/** The settings that tools ask a Redis for before they begin. */
const settings: Readonly<Record<string, string>> = { appendonly: 'no', databases: '1', maxmemory: '0', save: '' }

function configure(_: RespClient, words: readonly string[]): Answer {
  if (words[1]!.toUpperCase() !== 'GET') return new Failure('ERR settings are changed in the rule file, under serve')
  const names = words.slice(2).map(name => name.toLowerCase())
  return new Map(Object.entries(settings).filter(([name]) => names.includes(name)))
}

function inform(_client: RespClient, _words: readonly string[], { connections }: RespParts): Answer {
  const { user, system } = cpuUsage()
  const lines = [
    '# Server',
    `redis_version:${redisVersion}`,
    `diana_version:${dianaVersion}`,
    'redis_mode:standalone',
    `process_id:${pid}`,
    `uptime_in_seconds:${Math.floor(uptime())}`,
    '',
    '# Clients',
    `connected_clients:${connections()}`,
    '',
    '# Memory',
    `used_memory:${memoryUsage.rss()}`,
    '',
    '# Persistence',
    'loading:0',
    '',
    '# Replication',
    'role:master',
    '',
    '# CPU',
    `used_cpu_sys:${(system / 1e6).toFixed(6)}`,
    `used_cpu_user:${(user / 1e6).toFixed(6)}`,
  ]
  return `${lines.join('\r\n')}\r\n`
}

function noPermission({ user }: RespClient, what: string): Failure {
  return new Failure(`NOPERM user ${user!.name} has no permissions to use '${shown(what)}'`)
}

function wrongCaller(rule: string, size: number): Failure {
  const values =
    size === 0 ? 'no values, since it counts all callers together' : `${size} value${size === 1 ? '' : 's'}`
  return new Failure(`ERR rule '${shown(rule)}' takes ${values}, and then a cost`)
}

function wrong(what: string, expected: string): Failure {
  return new Failure(`ERR ${what} must be ${expected}`)
}

function shown(text: string): string {
  return text.length > 128 ? `${text.slice(0, 128)}…` : text
}

/** Returns a whole number from 0 to 2^31 - 1; undefined for any other text. */
function numberOf(text: string): number | undefined {
  if (!/^\d{1,10}$/.test(text)) return undefined
  const value = Number(text)
  return value > largest ? undefined : value
}
