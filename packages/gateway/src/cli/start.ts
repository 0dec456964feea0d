import { createLimiter, type Limiter } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { createDemoService, demoRules } from '../demo.ts'
import { createGateway } from '../gateway.ts'
import { type Arguments, type Command, Complaint, type Terminal } from './command.ts'

interface Settings {
  /** A rule file and the service to guard; the demo's where there is neither. */
  readonly guarded: { readonly config: string; readonly upstream: string } | undefined
  readonly port: number
  readonly host: string
}

/** `diana start`: the gateway. */
export const start: Command = {
  name: 'start',
  summary: 'Starts the gateway in front of a service; with no rule file, in front of a demo.',
  usage: '[--config FILE --upstream URL] [--port N] [--host ADDRESS]',
  details: [
    '  --config FILE     the rules; with --upstream',
    '  --upstream URL    the service that the calls go to, such as http://127.0.0.1:3000',
    '  --port N          where to listen; 8080 unless given, 0 for any free port',
    '  --host ADDRESS    127.0.0.1 unless given; 0.0.0.0 for every address of this machine',
  ],
  options: {
    config: { type: 'string' },
    upstream: { type: 'string' },
    port: { type: 'string' },
    host: { type: 'string' },
  },
  async run(args, terminal) {
    const settings = readSettings(args)
    const closing: (() => Promise<unknown>)[] = []
    try {
      const limiter = await createLimiter({ config: settings.guarded?.config ?? demoRules })
      closing.push(() => limiter.close())
      tellOfChanges(limiter, terminal)
      const upstream = settings.guarded?.upstream ?? (await startDemoService(closing))
      const logger = settings.guarded === undefined ? false : { level: 'warn' }
      const gateway = await createGateway({ limiter, upstream, logger })
      closing.push(() => gateway.close())
      const stopped = untilSignalled()
      const address = await listen(gateway, settings)
      introduce(address, upstream, settings, terminal)
      await stopped
      return 0
    } finally {
      // the gateway first, so that calls under way still find their service
      for (const close of closing.reverse()) await close()
    }
  },
}

/** One line whenever the rules or the store change their state, and for what went wrong before anybody could be told. */
function tellOfChanges(limiter: Limiter, terminal: Terminal): void {
  const { events } = limiter
  for (const { name, version, fromSnapshot, trouble } of limiter.status().sources) {
    if (trouble !== undefined) terminal.complain(`Diana starts without new rules from ${name}:\n${trouble}`)
    if (fromSnapshot) terminal.print(`Diana goes on with the rules that ${name} had (version ${version})`)
  }
  events.on('rules', ({ name, version }) => terminal.print(`Diana took new rules from ${name} (version ${version})`))
  events.on('rejected', ({ name, trouble }) => {
    terminal.complain(`Diana keeps her last good rules, since the new ones from ${name} cannot be obeyed:\n${trouble}`)
  })
  events.on('store', ({ healthy, kind, trouble, fleet }) => {
    if (healthy) terminal.print('Diana counts in Redis again')
    else if (kind === 'misconfigured') {
      terminal.complain(
        `Diana cannot count in Redis until store.redis is mended, its user, password or ACL: ${trouble}`,
      )
    } else {
      const part = fleet.size === 1 ? '' : `, her part of ${fleet.size}`
      terminal.complain(`Diana counts in this process${part}, since Redis cannot be asked: ${trouble}`)
    }
  })
  events.on('failure', ({ trouble }) => terminal.complain(`Diana keeps her last good rules: ${trouble}`))
}

function readSettings({ words, options }: Arguments): Settings {
  if (words.length > 0) throw new Complaint(2, `there is no use for "${words[0]}"`)
  const { config, upstream } = options as Record<string, string | undefined>
  if (config !== undefined && upstream === undefined) {
    throw new Complaint(2, 'say which service to guard: --upstream http://127.0.0.1:3000')
  }
  if (config === undefined && upstream !== undefined) {
    throw new Complaint(2, 'say which rules to guard it by: --config FILE')
  }
  const guarded = config === undefined || upstream === undefined ? undefined : { config, upstream: readUrl(upstream) }
  return { guarded, port: readPort(String(options.port ?? 8080)), host: String(options.host ?? '127.0.0.1') }
}

function readPort(text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new Complaint(2, `"${text}" is no port: write --port with a number from 0 to 65535`)
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return text
  throw new Complaint(1, `the upstream "${text}" is no URL: write one such as http://127.0.0.1:3000`)
}

async function startDemoService(closing: (() => Promise<unknown>)[]): Promise<string> {
  const service = createDemoService()
  closing.push(() => service.close())
  return service.listen({ port: 0, host: '127.0.0.1' })
}

async function listen(gateway: FastifyInstance, { port, host }: Settings): Promise<string> {
  try {
    return await gateway.listen({ port, host })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') throw new Complaint(1, `port ${port} of ${host} is taken: choose another with --port N`)
    if (code === 'EACCES') throw new Complaint(1, `port ${port} may not be opened by you: choose one above 1023`)
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
      throw new Complaint(1, `this machine has no address ${host}: choose another with --host ADDRESS`)
    }
    throw new Complaint(
      1,
      `cannot listen on port ${port} of ${host} (${code ?? message}): choose another with --port N`,
    )
  }
}

/** Resolves at the first SIGINT or SIGTERM; the second one does not wait for calls under way. */
function untilSignalled(): Promise<void> {
  return new Promise(resolve => {
    const stop = () => {
      for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
      resolve()
    }
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop)
  })
}

function introduce(address: string, upstream: string, { guarded }: Settings, terminal: Terminal): void {
  if (guarded !== undefined) {
    terminal.print(`Diana listens on ${address} in front of ${upstream}, with the rules of ${guarded.config}`)
    return
  }
  terminal.print(`Diana listens on ${address} in front of a demo service (${upstream}).`)
  terminal.print('')
  terminal.print(`Her rules are in ${demoRules}:`)
  terminal.print('/hello lets each account pass 5 times in 10 seconds; the other paths are more generous.')
  terminal.print('')
  terminal.print('Call it seven times as ann, and 200 turns to 503; then once as bob, who still passes:')
  terminal.print(`  curl -s -o /dev/null -w '%{http_code}\\n' -H 'x-account-id: ann' '${address}/hello?[1-7]'`)
  terminal.print(`  curl -i -H 'x-account-id: bob' ${address}/hello`)
}
