import { EventEmitter, once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, vi } from 'vitest'
import { algorithms } from '../../../packages/limiter/src/algorithms/index.ts'
import { dimensions } from '../../../packages/limiter/src/dimensions/index.ts'
import { LiveRules } from '../../../packages/limiter/src/reload/live-rules.ts'
import type { SourceStatus } from '../../../packages/limiter/src/reload/source-state.ts'
import type { Mistake } from '../../../packages/limiter/src/rules/mistake.ts'
import { parseText } from '../../../packages/limiter/src/rules/parse-text.ts'
import type { Rule, RuleDocument } from '../../../packages/limiter/src/rules/rule.ts'
import { hashText } from '../../../packages/limiter/src/sources/client/text.ts'
import { sources } from '../../../packages/limiter/src/sources/index.ts'
import type { Source, SourceDocument } from '../../../packages/limiter/src/sources/source.ts'

// a center that failed is asked again at once; what waits for the disk waits as long as it takes
vi.mock(import('../../../packages/limiter/src/sources/client/pause.ts'), async original => {
  const { pause, ...others } = await original()
  return { ...others, pause: (ms, signal, options) => pause(options?.ref === false ? ms : 0, signal, options) }
})

export const folder: string = mkdtempSync(join(tmpdir(), 'diana-live-'))
const closing: LiveRules[] = []
let files = 0

afterEach(async () => {
  vi.useRealTimers()
  for (const live of closing.splice(0)) await live.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A config center whose documents and errors the test sets. */
export class FakeConfigCenter implements Source {
  readonly name = 'center'
  readonly #updates: (SourceDocument | Error)[] = []
  #wake = (): void => {}
  watches = 0

  publish(text: string, version = hashText(text)): void {
    this.#updates.push({ text, version })
    this.#wake()
  }

  delete(): void {
    this.#updates.push({ text: '', version: '', isMissing: true })
    this.#wake()
  }

  fail(message: string): void {
    this.#updates.push(new Error(message))
    this.#wake()
  }

  async *watch(signal: AbortSignal): AsyncGenerator<SourceDocument> {
    this.watches++
    while (!signal.aborted) {
      const next = this.#updates.shift()
      if (next instanceof Error) throw next
      if (next) yield next
      else {
        await new Promise<void>(resolve => {
          this.#wake = resolve
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
      }
    }
  }
}

export interface Told {
  rules: [RuleDocument]
  taken: [SourceStatus]
  rejected: [SourceStatus, readonly Mistake[]]
  failure: [SourceStatus]
  missing: [SourceStatus]
}

export const local = 'rules:\n  - { id: all, limit: 10/s }\n  - { id: sms, limit: 1/m }\n'

/** Live rules over a center and a local file, which names the center in its last line. */
export function startLiveRules(
  options: { text?: string; snapshot?: string; startTimeout?: string; center?: Source } = {},
) {
  const { text = local, snapshot = '', startTimeout = '2s', center = new FakeConfigCenter() } = options
  const path = join(folder, `rules-${files++}.yaml`)
  const words = { center: 'here', startTimeout, ...(snapshot && { snapshot }) }
  const whole = (text: string): string => `${text}\nremote: ${JSON.stringify(words)}\n`
  const kind = { name: 'center', options: {}, create: () => center }
  const vocabulary = { algorithms, dimensions, sources: [...sources, kind] }
  writeFileSync(path, whole(text))
  const file = { path, version: hashText(whole(text)) }
  const { document } = parseText(whole(text), path, vocabulary)
  const events = new EventEmitter<Told>()
  const onRules = vi.fn<(document: RuleDocument) => void>()
  const live = new LiveRules(
    { document: document!, file, remote: center, vocabulary },
    {
      onRules: document => {
        onRules(document)
        events.emit('rules', document)
      },
      onTaken: source => events.emit('taken', source),
      onRejected: (source, mistakes) => events.emit('rejected', source, mistakes),
      onFailure: source => events.emit('failure', source),
      onMissing: source => events.emit('missing', source),
    },
  )
  closing.push(live)
  /** The next thing told of this kind, after something is done. */
  const after = async <Kind extends keyof Told>(kind: Kind, act: () => unknown): Promise<Told[Kind]> => {
    const told = once(events, kind) as Promise<Told[Kind]>
    await act()
    return await told
  }
  const replace = (text: string): void => {
    writeFileSync(`${path}.new`, text)
    renameSync(`${path}.new`, path)
  }
  const write = (text: string): void => replace(whole(text))
  const remoteStatus = (): SourceStatus => live.sources()[1]!
  const localStatus = (): SourceStatus => live.sources()[0]!
  return { live, path, file, onRules, events, after, write, replace, remoteStatus, localStatus }
}

export function limitsOf({ document }: LiveRules): Record<string, string> {
  const show = ({ enabled, limits: [limit], origin }: Rule): string =>
    `${enabled ? '' : 'off '}${limit!.count}/${limit!.periodMs} ${origin === 'center' ? 'center' : 'file'}`
  return Object.fromEntries(document.rules.map(rule => [rule.id, show(rule)]))
}

export const localLimits = { all: '10/1000 file', sms: '1/60000 file' }
