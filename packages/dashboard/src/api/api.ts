import type { Answers, HistoryScope, RefusedCall, Where } from './generated.ts'
import { Problem } from './problem.ts'
import { token } from './session.ts'

const ROOT = 'api/v1/'

/** Asks the gateway; a refusal of any kind is a `Problem`. */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  // a proxy whose session has ended then says so, and sends no page to sign in
  headers.append('accept', 'application/json')
  if (token.value !== '') headers.set('authorization', `Bearer ${token.value}`)
  let response: Response
  try {
    // cookies are those of a proxy in front: the gateway has none
    const how = { cache: 'no-store', credentials: 'same-origin', redirect: 'manual' } as const
    response = await fetch(ROOT + path, { ...init, ...how, headers })
  } catch (error) {
    throw new Problem(0, String((error as Error).message))
  }
  if (response.ok) return response
  // only a proxy redirects: to the page where users sign in
  if (response.type === 'opaqueredirect') throw new Problem(401, '')
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>
  throw new Problem(response.status, String(body.detail ?? body.title ?? response.statusText), body)
}

async function read<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  const response = await ask(path, signal ? { signal } : {})
  try {
    return (await response.json()) as Answer
  } catch (error) {
    throw new Problem(0, String((error as Error).message))
  }
}

async function send<Answer>(method: string, path: string, body?: object): Promise<Answer> {
  const init: RequestInit =
    body === undefined
      ? { method }
      : { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  const response = await ask(path, init)
  const text = await response.text()
  return (text === '' ? {} : JSON.parse(text)) as Answer
}

const part = encodeURIComponent

export interface RefusalQuestion {
  readonly unmask: boolean
  readonly search: string
  /** Empty for all rules. */
  readonly rule: string
  readonly top: number
}

/** A refused call, with an id for its row. */
export interface ListedRefusal extends RefusedCall {
  readonly id: string
}

export interface HistoryQuestion {
  readonly seconds: number
  readonly to?: number | undefined
  readonly scope: HistoryScope
  readonly process?: string | undefined
  readonly rule?: string | undefined
}

export interface CallerQuestion extends RefusalQuestion {
  readonly show: 'all' | 'refused'
  readonly sort: 'refused' | 'calls' | 'used'
}

/** A caller of a rule: by the id of their row, or by their value of the rule's one dimension. */
export type NamedCaller = { readonly rule: string } & ({ readonly caller: string } | { readonly key: string })

/** Writes a query; empty values are left out. */
function queryOf(question: object): string {
  const given = Object.entries(question).filter(([, value]) => value !== '' && value !== false && value !== undefined)
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
}

/** The admin API, one function per question. */
export const api = {
  session: (signal?: AbortSignal) => read<Answers['getSession']>('session', signal),
  audit: () => read<Answers['getAudit']>('audit'),
  status: (signal?: AbortSignal) => read<Answers['getStatus']>('status', signal),
  rules: (signal?: AbortSignal) => read<Answers['getRules']>('rules', signal).then(({ rules }) => rules),
  figures: (seconds: number, signal?: AbortSignal) => read<Answers['getFigures']>(`figures?seconds=${seconds}`, signal),
  history: (question: HistoryQuestion, signal?: AbortSignal) =>
    read<Answers['getHistory']>(`history?${queryOf(question)}`, signal),
  callers: (question: CallerQuestion) =>
    read<Answers['getCallers']>(`callers?${queryOf(question)}`).then(({ callers }) => callers),
  refusals: (question: RefusalQuestion) =>
    read<Answers['getRefusals']>(`refusals?${queryOf(question)}`).then(({ refusals }) =>
      refusals.map((one, index) => ({ ...one, id: `${one.at} ${one.caller} ${one.path} ${refusals.length - index}` })),
    ),
  blocks: (unmask: boolean) =>
    read<Answers['getBlocks']>(`blocks${unmask ? '?unmask=true' : ''}`).then(({ blocks }) => blocks),
  block: (caller: string, period: string) => send('POST', 'blocks', { caller, for: period }),
  blockKey: (rule: string, key: string, period: string) => send('POST', 'blocks', { rule, key, for: period }),
  unblock: (id: string) => send('DELETE', `blocks/${part(id)}`),
  overrides: () => read<Answers['getOverrides']>('overrides').then(({ overrides }) => overrides),
  setOverride: (who: NamedCaller, limit: string, until: number | undefined, reason: string) =>
    send('POST', 'overrides', { ...who, limit, ...(until !== undefined && { until }), ...(reason && { reason }) }),
  removeOverride: (id: string) => send('DELETE', `overrides/${part(id)}`),
  grant: (who: NamedCaller, permits: number) => send<Answers['postCredits']>('POST', 'credits', { ...who, permits }),
  reset: (caller: string) => send('POST', 'reset', { caller }),
  explain: (request: string, ip?: string) =>
    send<Answers['postExplain']>('POST', 'explain', { request, ...(ip !== undefined && { ip }) }),
  explainCaller: (caller: string) => send<Answers['postExplain']>('POST', 'explain', { caller }),
  document: (where: Where) => read<Answers['getDocument']>(`document?where=${where}`),
  versions: (where: Where) => read<Answers['getVersions']>(`versions?where=${where}`).then(({ versions }) => versions),
  version: (id: string) => read<Answers['getVersionsById']>(`versions/${part(id)}`).then(({ text }) => text),
  check: (where: Where, text: string) =>
    send<Answers['postCheck']>('POST', 'check', { where, text }).then(({ mistakes }) => mistakes),
  preview: (where: Where, text: string) => send<Answers['postPreview']>('POST', 'preview', { where, text }),
  replay: (where: Where, text: string, log: string | undefined) =>
    send<Answers['postReplay']>('POST', 'replay', { where, text, ...(log !== undefined && { log }) }),
  save: (where: Where, text: string, version: string, comment: string) =>
    send<Answers['putDocument']>('PUT', 'document', { where, text, version, ...(comment && { comment }) }),
  /** Without an id, of a new rule. */
  draft: (where: Where, id: string | undefined, set: readonly object[]) =>
    send<Answers['postDraft']>('POST', 'draft', { where, set, ...(id !== undefined && { id }) }),
  changes: (where: Where, text: string, comment: string) =>
    send<Answers['postChanges']>('POST', 'changes', { where, text, ...(comment && { comment }) }),
  names: () => read<Answers['getNames']>('names'),
  trials: () => read<Answers['getTrials']>('trials').then(({ trials }) => trials),
  try: (rule: string, text: string) => send<Answers['postTrials']>('POST', 'trials', { rule, text }),
  acceptTrial: (id: string, version: string) => send('POST', `trials/${part(id)}/accept`, { version }),
  endTrial: (id: string) => send('DELETE', `trials/${part(id)}`),
  services: () => read<Answers['getServices']>('services').then(({ routes }) => routes),
  processes: () => read<Answers['getProcesses']>('processes').then(({ processes }) => processes),
  /** The paths that this gateway knows, so that nothing is offered which it cannot do. */
  paths: (signal?: AbortSignal) =>
    read<{ paths: object }>('openapi.json', signal).then(({ paths }) => new Set(Object.keys(paths))),
  schema: () => read<Answers['getSchema']>('schema'),
}
