import { setTimeout as pause } from 'node:timers/promises'
import { CliError, type Terminal } from '../process/terminal.ts'
import type { Arguments, Command } from './command.ts'
import { drawTop, type LiveStats, orders, type TopStatus } from './top-screen.ts'

const patienceMs = 5000
const retryMs = 1000

/** `diana top`: what is being refused right now? */
export const top: Command = {
  usage: '[--admin-port N | --url URL] [--sort refused] [--once] [--json]',
  details: [
    '  --admin-port N    the admin port of a gateway on this machine; default 8081',
    '  --url URL         its admin API elsewhere, such as https://gateway.example:8081',
    '  --sort NAME       the order of rules: refused (default), allowed, waiting, load or name',
    '  --once            show the next whole second and end',
    '  --json            print each second as JSON, one a line',
    '',
    '  In a terminal the keys r, a, w, l and n change the order, and q ends.',
    '  If the admin API requires a token, it is read from DIANA_ADMIN_TOKEN.',
  ],
  options: {
    'admin-port': { type: 'string' },
    url: { type: 'string' },
    sort: { type: 'string' },
    once: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  async run({ words, options }, terminal) {
    if (words.length > 0) throw new CliError(2, `unexpected argument "${words[0]}"`)
    const base = readBase(options.url, options['admin-port'])
    const shown = new Shown(options, terminal)
    try {
      for (let isFirst = true; ; isFirst = false) {
        const failure = await follow(base, shown, terminal).catch((error: Error) => error)
        if (failure === undefined || shown.hasEnded) return 0
        // a user who looks on must not have to begin again because the gateway was started again
        if (shown.isOnce || isFirst || failure instanceof CliError) throw toCliError(failure, base)
        terminal.printError(`diana top: ${toCliError(failure, base).message}; trying again`)
        await pause(retryMs)
        if (shown.hasEnded) return 0
      }
    } finally {
      shown.close()
    }
  },
}

/** The view that a user has chosen, by options and by keys. */
class Shown {
  readonly isOnce: boolean
  readonly isJson: boolean
  order = 'r'
  hasEnded = false
  /** Is called when the user has pressed a key. */
  onChange: () => void = () => {}
  readonly close: () => void

  constructor({ once, json, sort = 'refused' }: Arguments['options'], terminal: Terminal) {
    this.isOnce = once === true
    this.isJson = json === true
    const order = Object.keys(orders).find(key => orders[key]!.name === sort)
    if (order === undefined) {
      const names = Object.values(orders).map(({ name }) => name)
      throw new CliError(2, `--sort must be ${names.slice(0, -1).join(', ')} or ${names.at(-1)}, not "${String(sort)}"`)
    }
    this.order = order
    this.close = (this.isOnce || this.isJson ? undefined : terminal.onKey?.(key => this.#press(key))) ?? (() => {})
  }

  #press(key: string): void {
    // q, and the keys that end programs: Ctrl-C and Ctrl-D
    if (key === 'q' || key === '\u0003' || key === '\u0004') this.hasEnded = true
    else if (Object.hasOwn(orders, key)) this.order = key
    else return
    this.onChange()
  }
}

function readBase(url: unknown, port: unknown): URL {
  if (url !== undefined && port !== undefined) throw new CliError(2, 'give --url or --admin-port, not both')
  if (url === undefined) {
    const text = String(port ?? 8081)
    if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
      throw new CliError(2, `--admin-port must be a number from 0 to 65535, not "${text}"`)
    return new URL(`http://127.0.0.1:${text}/`)
  }
  const parsed = URL.canParse(String(url)) ? new URL(String(url)) : undefined
  if (parsed?.protocol !== 'http:' && parsed?.protocol !== 'https:')
    throw new CliError(2, `--url must be a URL such as https://gateway.example:8081, not "${String(url)}"`)
  return parsed
}

function toCliError(error: Error, base: URL): CliError {
  if (error instanceof CliError) return error
  const { code } = (error.cause ?? error) as NodeJS.ErrnoException
  return new CliError(
    1,
    `${base.origin} cannot be reached (${code ?? error.message}): is the gateway running, with its admin API?`,
  )
}

/** Shows second after second until the stream ends, which is a failure unless one second was all that was wanted. */
async function follow(base: URL, shown: Shown, terminal: Terminal): Promise<undefined> {
  const leaving = new AbortController()
  const connecting = setTimeout(() => leaving.abort(new Error('gave no answer')), patienceMs)
  const token = process.env.DIANA_ADMIN_TOKEN
  const headers = token ? { authorization: `Bearer ${token}` } : {}
  const response = await fetch(new URL('api/v1/live', base), { headers, signal: leaving.signal })
  clearTimeout(connecting)
  if (response.status === 401) {
    const remedy = token
      ? 'the token in DIANA_ADMIN_TOKEN is wrong'
      : 'the admin API requires a token: set DIANA_ADMIN_TOKEN'
    throw new CliError(1, remedy)
  }
  if (!response.ok || !response.body) throw new CliError(1, `${base.origin} answered HTTP ${response.status}`)
  let status: TopStatus = {}
  let last: LiveStats | undefined
  const draw = (figures: LiveStats): void => {
    const { isOnce, order } = shown
    const { hasColors } = terminal
    const isClearing = !isOnce && terminal.isScreen === true
    for (const line of drawTop(figures, status, {
      ...{ isClearing, order, hasColors },
      size: isOnce ? undefined : terminal.size?.(),
    })) {
      terminal.print(line)
    }
  }
  if (shown.hasEnded) leaving.abort()
  shown.onChange = () => {
    if (shown.hasEnded) leaving.abort()
    else if (last !== undefined) draw(last)
  }
  try {
    for await (const { event, data } of eventsOf(response.body)) {
      if (event === 'status') status = data as TopStatus
      if (event !== 'figures') continue
      const figures = data as LiveStats
      last = figures
      if (shown.isJson) terminal.print(JSON.stringify(figures))
      else draw(figures)
      if (shown.isOnce) return undefined
    }
  } finally {
    leaving.abort()
  }
  throw new Error('ended the stream')
}

const longestEvent = 16 * 1024 * 1024

async function* eventsOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<{ event: string; data: unknown }> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true })
    if (text.length > longestEvent) throw new CliError(1, 'this is not the admin API of Diana')
    const blocks = text.split('\n\n')
    text = blocks.pop()!
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block)?.[1]
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (event !== undefined && data !== undefined) yield { event, data: JSON.parse(data) as unknown }
    }
  }
}
