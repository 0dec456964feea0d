import type { IncomingMessage, ServerResponse } from 'node:http'
import { editOptions, type OptionChange } from '../../limiter/src/rules/edit/edit-options.ts'
import { documentChange, noteChanges } from '../../limiter/src/rules/edit/rule-changes.ts'
import { Figures } from './figures.ts'
import { documents, names, ruleList, schema } from './rules.ts'
import { processes, services } from './services.ts'

type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void

/**
 * Creates a stand-in for the gateway's admin API with plausible figures, for work on the page alone: `npm run dev`. It is no part of what
 * is built.
 */
export function createFakeAdmin({ crowd = 0 }: { crowd?: number } = {}): Middleware {
  const rules = ruleList(crowd)
  const figures = new Figures(rules.map(({ id }) => id))
  const startedAt = Date.now() - 3_725_000
  const state = {
    text: { ...documents },
    version: { local: 1, remote: 1 },
    versions: [] as Record<string, unknown>[],
    blocks: [] as Record<string, unknown>[],
  }
  const documentOf = (where: 'local' | 'remote') => ({
    text: state.text[where],
    version: String(state.version[where]),
    name: where === 'remote' ? '/diana/rules' : 'diana.yaml',
    writable: true,
  })

  const status = () => ({
    version: '0.1.0',
    startedAt,
    uptimeMs: Date.now() - startedAt,
    demo: true,
    processes: 4,
    keys: 18_204,
    maxKeys: 1_000_000,
    overflowing: [],
    fleetHistory: true,
    sources: [
      { name: 'diana.yaml', role: 'local', version: 'a41f09', takenAt: startedAt, fromSnapshot: false },
      {
        name: 'etcd http://127.0.0.1:2379/diana/rules',
        role: 'remote',
        version: '412',
        takenAt: startedAt + 600_000,
        fromSnapshot: false,
      },
    ],
    troubledRoutes: [{ id: 'orders', route: '/orders', unhealthy: 1, of: 3 }],
    store: {
      healthy: true,
      since: startedAt + 1_800_000,
      fleet: { size: 4 },
      outages: [
        {
          since: startedAt + 1_740_000,
          until: startedAt + 1_800_000,
          code: 'STORE_REFUSES_CONNECTIONS',
          what: 'Redis refuses connections',
        },
      ],
    },
  })

  const answers: Record<string, (body: Record<string, string>, url: URL) => unknown> = {
    'GET status': status,
    'GET session': () => ({ role: 'operator', user: 'ann@example.com', via: 'proxy', logoutUrl: '/sign_out' }),
    'GET audit': () => ({ changes: [], refused: [] }),
    'GET versions': (_body, url) => {
      const [, id] = url.pathname.split('/versions/')
      const known = state.versions.filter(version => id === undefined || version.id === id)
      return id === undefined ? { versions: known.map(({ text: _, ...version }) => version) } : known[0]
    },
    'GET names': () => names,
    'POST draft': ({ where, id, set }) => {
      const place = where === 'remote' ? 'remote' : 'local'
      const base = documentOf(place)
      const edited = editOptions(base.text, id, (set ?? []) as unknown as readonly OptionChange[])
      return edited && { base, ...edited, mistakes: mistakesIn(edited.text) }
    },
    'POST changes': ({ where, text = '', comment = '' }) => {
      const before = state.text[where === 'remote' ? 'remote' : 'local']
      const noted = noteChanges(before, text, comment)
      return { ...documentChange(before, text), findings: [], ...(noted !== undefined && { noted }) }
    },
    'GET refusals': () => ({ refusals: figures.refusals() }),
    'GET openapi.json': () => ({ paths: Object.fromEntries(paths.map(name => [`/api/v1/${name}`, {}])) }),
    'GET services': services,
    'GET processes': () => processes(startedAt),
    'GET rules': () => ({ rules }),
    'GET figures': () => figures.history(),
    'GET history': (_body, url) => figures.range(Number(url.searchParams.get('seconds')), url.searchParams.get('rule')),
    'GET schema': () => schema,
    'GET callers': (_body, url) => ({ callers: figures.callers(url.searchParams.get('unmask') === 'true') }),
    'GET blocks': () => ({ blocks: state.blocks }),
    'POST blocks': body => {
      state.blocks.push({ id: body.caller, rule: 'hello', key: body.caller, until: Date.now() + 600_000 })
      return {}
    },
    'DELETE blocks': (_body, url) => {
      state.blocks = state.blocks.filter(({ id }) => !url.pathname.endsWith(`/${id}`))
      return {}
    },
    'POST reset': () => ({}),
    'GET trials': () => ({ trials: [] }),
    'POST explain': () => explanation,
    'GET document': (_body, url) => documentOf(url.searchParams.get('where') === 'remote' ? 'remote' : 'local'),
    'POST check': ({ text = '' }) => ({ mistakes: mistakesIn(text) }),
    'POST preview': () => preview,
    'PUT document': ({ where, text = '', comment }) => {
      const place = where === 'remote' ? 'remote' : 'local'
      const { rules: changes } = documentChange(state.text[place], text)
      const replaced = { text: state.text[place], at: Date.now(), from: '127.0.0.1', changed: changes.length }
      state.versions.unshift({ id: String(state.version[place]), ...replaced, rules: changes, comment })
      state.text[place] = text
      return { version: String(++state.version[place]) }
    },
  }

  return (request, response, next) => {
    const url = new URL(request.url ?? '/', 'http://fake')
    if (!url.pathname.startsWith('/api/v1/')) return next()
    const name = url.pathname.slice('/api/v1/'.length)
    if (name === 'live') return stream(request, response, figures, status)
    const answer = answers[`${request.method} ${name.split('/')[0]}`]
    readBody(request).then(body => {
      response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer?.(body, url) ?? { detail: 'the fake admin API does not know this' }))
    })
  }
}

function stream(request: IncomingMessage, response: ServerResponse, figures: Figures, status: () => unknown): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const tell = (name: string, data: unknown) => response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
  tell('status', status())
  const timer = setInterval(() => tell('figures', figures.second(Math.floor(Date.now() / 1000) - 1)), 1000)
  request.on('close', () => clearInterval(timer))
}

async function readBody(request: IncomingMessage): Promise<Record<string, string>> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text === '' ? {} : JSON.parse(text)
}

function mistakesIn(text: string): unknown[] {
  return text.split('\n').flatMap((line, index) => {
    const column = line.search(/\d+\/sec\b/) + 1
    return column === 0
      ? []
      : [{ line: index + 1, column, message: `limit "${line.slice(column - 1)}" is not a limit: did you mean 5/s?` }]
  })
}

const paths = ['blocks', 'reset', 'services', 'processes']
const decision = { shadow: false, resetAfterMs: 8000, retryAfterMs: 0, allowed: true }
const explanation = {
  call: { method: 'POST', path: '/orders', ip: '127.0.0.1' },
  allowed: false,
  refusedBy: 'orders-written',
  answer: { status: 503 },
  rules: [
    {
      rule: 'whole-system',
      algorithm: 'sliding-window',
      key: {},
      decisions: [{ ...decision, rule: 'whole-system', limit: 1000, periodMs: 1000, remaining: 812 }],
      leased: 24,
    },
    {
      rule: 'backend',
      algorithm: 'adaptive',
      key: {},
      decisions: [{ ...decision, rule: 'backend', limit: 38, periodMs: 0, remaining: 9 }],
      estimate: { limit: 38, inFlight: 29, perSecond: 840, baseMs: 31, latencyMs: 44, limiting: true },
    },
    {
      rule: 'orders-written',
      algorithm: 'fixed-window',
      key: { account: { countedBy: 'value', value: 'ann' } },
      decisions: [
        {
          ...decision,
          rule: 'orders-written',
          limit: 20,
          periodMs: 60_000,
          remaining: 0,
          allowed: false,
          retryAfterMs: 23_400,
        },
        { ...decision, rule: 'orders-written', limit: 5, periodMs: 1000, remaining: 4 },
      ],
    },
  ],
}
const preview = {
  from: Date.now() - 300_000,
  to: Date.now(),
  calls: 18_400,
  sampled: true,
  rules: [{ id: 'hello', before: { allowed: 900, refused: 310 }, after: { allowed: 1100, refused: 110 } }],
  total: { before: { allowed: 17_800, refused: 600 }, after: { allowed: 18_000, refused: 400 } },
}
