import { execFileSync } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { algorithms } from '../algorithms/index.ts'
import { dimensions } from '../dimensions/index.ts'
import { formatMistake, type Mistake } from '../rules/mistake.ts'
import { parseText } from '../rules/parse.ts'
import type { Rule, RuleDocument } from '../rules/rule.ts'
import { hashText } from '../sources/client/text.ts'
import { sources } from '../sources/index.ts'
import type { Source, SourceDocument } from '../sources/source.ts'
import { LiveRules } from './live-rules.ts'
import type { SourceStatus } from './source-state.ts'

// a centre that failed is asked again at once; what waits for the disk waits as long as it takes
vi.mock(import('../sources/client/pause.ts'), async original => {
  const { pause } = await original()
  return { pause: (ms, signal, options) => pause(options?.ref === false ? ms : 0, signal, options) }
})

const folder = mkdtempSync(join(tmpdir(), 'diana-live-'))
const closing: LiveRules[] = []
let files = 0

afterEach(async () => {
  vi.useRealTimers()
  for (const live of closing.splice(0)) await live.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A config centre that says what it is told to. */
class Centre implements Source {
  readonly name = 'centre'
  readonly #news: (SourceDocument | Error)[] = []
  #wake = (): void => {}
  watches = 0

  say(text: string, version = hashText(text)): void {
    this.#news.push({ text, version })
    this.#wake()
  }

  delete(): void {
    this.#news.push({ text: '', version: '', isMissing: true })
    this.#wake()
  }

  fail(message: string): void {
    this.#news.push(new Error(message))
    this.#wake()
  }

  async *watch(signal: AbortSignal): AsyncGenerator<SourceDocument> {
    this.watches++
    while (!signal.aborted) {
      const next = this.#news.shift()
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

interface Told {
  rules: [RuleDocument]
  taken: [SourceStatus]
  rejected: [SourceStatus, readonly Mistake[]]
  failure: [SourceStatus]
  missing: [SourceStatus]
}

const local = 'rules:\n  - { id: all, limit: 10/s }\n  - { id: sms, limit: 1/m }\n'

/** Live rules over a centre and a local file, which names the centre in its last line. */
function house(options: { text?: string; snapshot?: string; startTimeout?: string; centre?: Source } = {}) {
  const { text = local, snapshot = '', startTimeout = '2s', centre = new Centre() } = options
  const path = join(folder, `rules-${files++}.yaml`)
  const words = { centre: 'here', startTimeout, ...(snapshot && { snapshot }) }
  const whole = (text: string): string => `${text}\nremote: ${JSON.stringify(words)}\n`
  const kind = { name: 'centre', options: {}, create: () => centre }
  const vocabulary = { algorithms, dimensions, sources: [...sources, kind] }
  writeFileSync(path, whole(text))
  const file = { path, version: hashText(whole(text)) }
  const { document } = parseText(whole(text), path, vocabulary)
  const events = new EventEmitter<Told>()
  const onRules = vi.fn<(document: RuleDocument) => void>()
  const live = new LiveRules(
    { document: document!, file, remote: centre, vocabulary },
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

function limitsOf({ document }: LiveRules): Record<string, string> {
  const show = ({ enabled, limits: [limit], origin }: Rule): string =>
    `${enabled ? '' : 'off '}${limit!.count}/${limit!.periodMs} ${origin === 'centre' ? 'centre' : 'file'}`
  return Object.fromEntries(document.rules.map(rule => [rule.id, show(rule)]))
}

const localLimits = { all: '10/1000 file', sms: '1/60000 file' }

describe('remote rules', () => {
  it('win over local ones of the same id, stand behind them otherwise, and may turn one off', async () => {
    const centre = new Centre()
    const { live, after } = house({ centre })
    centre.say(
      'rules:\n  - { id: more, limit: 7/s }\n  - { id: sms, limit: 1/m, enabled: false }\n  - { id: all, limit: 20/s }\n',
    )
    await live.start()
    expect(limitsOf(live)).toEqual({ all: '20/1000 centre', sms: 'off 1/60000 centre', more: '7/1000 centre' })
    expect(live.document.rules.map(({ id }) => id)).toEqual(['all', 'sms', 'more'])
    await after('taken', () => centre.say('{"rules": [{"id": "more", "limit": "8/s"}]}'))
    expect(limitsOf(live)).toEqual({ ...localLimits, more: '8/1000 centre' })
  })

  it('may name what the local document identifies, and have its store', async () => {
    const centre = new Centre()
    const text = `identify: { tenant: header:x-tenant }\nstore: { redis: redis://127.0.0.1 }\n${local}`
    const { live } = house({ centre, text })
    centre.say('rules: [{ id: t, by: tenant, limit: 1/s, count: distributed }]')
    await live.start()
    expect(live.document.rules[2]).toMatchObject({ by: ['tenant'], count: 'distributed', origin: 'center' })
    expect(live.document.store).toEqual({ redis: ['redis://127.0.0.1'], timeoutMs: 400 })
  })

  it('are told of with their version and when they were taken', async () => {
    const centre = new Centre()
    const { live, after, remoteStatus, localStatus, path, file } = house({ centre })
    expect(remoteStatus()).toEqual({ name: 'centre', role: 'remote', fromSnapshot: false, taken: 0, rejected: 0 })
    const since = Date.now()
    centre.say('rules: [{ id: a, limit: 1/s }]', '7')
    await live.start()
    expect(remoteStatus()).toMatchObject({ version: '7', taken: 1, rejected: 0, trouble: undefined })
    expect(remoteStatus().takenAt).toBeGreaterThanOrEqual(since)
    expect(localStatus()).toMatchObject({ name: path, role: 'local', version: file.version, taken: 1 })
    const [told] = await after('taken', () => centre.say('rules: [{ id: a, limit: 2/s }]', '8'))
    expect(told).toEqual(remoteStatus())
    expect(told).toMatchObject({ version: '8', taken: 2 })
  })

  it('said again under another version are not taken again', async () => {
    const centre = new Centre()
    const { live, after, onRules, remoteStatus } = house({ centre })
    centre.say('rules: [{ id: a, limit: 1/s }]', '1')
    await live.start()
    centre.say('rules: [{ id: a, limit: 1/s }]', '2')
    await after('rejected', () => centre.say('', '3'))
    expect(onRules).toHaveBeenCalledTimes(1)
    expect(remoteStatus()).toMatchObject({ version: '2', taken: 1, rejected: 1 })
  })
})

describe('a document of the centre that is deleted', () => {
  const remoteText = 'rules: [{ id: all, limit: 20/s }, { id: more, limit: 7/s }]'
  const remoteLimits = { ...localLimits, all: '20/1000 centre', more: '7/1000 centre' }

  it('leaves running and new processes with the same rules, the local ones, and says so once', async () => {
    const [running, starting] = [new Centre(), new Centre()]
    const { live, after, events, remoteStatus } = house({ centre: running })
    running.say(remoteText)
    await live.start()
    expect(limitsOf(live)).toEqual(remoteLimits)
    const [status] = await after('missing', () => running.delete())
    expect(status.trouble).toContain('there is no document, so the local rules are in force')
    expect(status).toMatchObject({ version: undefined, rejected: 0 })
    const missing = vi.fn()
    events.on('missing', missing)
    running.delete()
    const other = house({ centre: starting })
    starting.delete()
    await other.after('missing', () => other.live.start())
    expect(limitsOf(live)).toEqual(localLimits)
    expect(limitsOf(other.live)).toEqual(localLimits)
    expect(other.remoteStatus().trouble).toBe(remoteStatus().trouble)
    expect(missing).not.toHaveBeenCalled()
  })

  it('is obeyed again once it is back, even if it is the same', async () => {
    const centre = new Centre()
    const { live, after, remoteStatus } = house({ centre })
    centre.say(remoteText)
    await live.start()
    await after('missing', () => centre.delete())
    await after('taken', () => centre.say(remoteText))
    expect(limitsOf(live)).toEqual(remoteLimits)
    expect(remoteStatus().trouble).toBeUndefined()
  })

  it('has no snapshot any more, so that a start without the centre begins with the local rules too', async () => {
    const path = join(folder, 'deleted.json')
    const centre = new Centre()
    const { live, after } = house({ centre, snapshot: path })
    centre.say(remoteText)
    await live.start()
    await after('missing', () => centre.delete())
    await live.close()
    expect(() => statSync(path)).toThrow('ENOENT')
  })

  it('takes the rules of a snapshot with it', async () => {
    const path = join(folder, 'recalled.json')
    writeFileSync(path, JSON.stringify({ source: 'centre', version: '1', text: remoteText }), { mode: 0o600 })
    const centre = new Centre()
    const { live } = house({ centre, snapshot: path })
    centre.delete()
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    await live.close()
    expect(() => statSync(path)).toThrow('ENOENT')
  })

  it('lets local rules in that could not be obeyed beside it', async () => {
    const centre = new Centre()
    const { live, after, write } = house({ centre, text: `identify: { tenant: header:x-tenant }\n${local}` })
    centre.say('rules: [{ id: t, by: tenant, limit: 1/s }]')
    await live.start()
    await after('rejected', () => write('rules: [{ id: all, limit: 99/s }]'))
    await after('missing', () => centre.delete())
    expect(limitsOf(live)).toEqual({ all: '99/1000 file' })
  })

  it('stays in force if what would be left cannot be obeyed', async () => {
    const centre = new Centre()
    const { live, after, onRules } = house({ centre })
    centre.say(remoteText)
    await live.start()
    onRules.mockImplementation(() => {
      throw new Error('no')
    })
    await after('rejected', () => centre.delete())
    expect(limitsOf(live)).toEqual(remoteLimits)
  })
})

const bomb = `a: &a [x,x,x,x,x,x,x,x,x,x]\n${[...'bcdefgh'].map((name, i) => `${name}: &${name} [${`*${'abcdefg'[i]},`.repeat(10)}]\n`).join('')}rules: *h\n`

describe('a document of the centre that cannot be obeyed', () => {
  it.each([
    ['empty', '', 'centre:1:1: no rules: the document is empty'],
    ['without rules', 'rules: []', 'centre:1:8: rules is an empty list'],
    ['null', 'null', 'centre:1:1: the document must be a map'],
    ['a list', '[]', 'centre:1:1: the document must be a map'],
    ['text', 'out of order', 'centre:1:1: the document must be a map'],
    ['not YAML', 'rules: [', 'centre:1:9: this is not YAML'],
    ['a page of HTML', '<html><body>502 Bad Gateway</body></html>', 'centre:1:1: the document must be a map'],
    ['cut off', '{"rules": [{"id": "all", "limit": "20/s"}, {"id": "sm', 'centre:1:54: this is not YAML'],
    [
      'cut off within a rule',
      'rules:\n  - { id: all, limit: 20/s }\n  - id: sms',
      'centre:3:5 rule "sms": limit is missing',
    ],
    [
      'wrong in one rule',
      'rules:\n  - { id: all, limit: 20/s }\n  - { id: sms, limit: 5 }',
      'centre:3:23 rule "sms": limit 5 has no period',
    ],
    ['of wrong types', 'rules: { all: 20/s }', 'centre:1:8: rules must be a list'],
    [
      'with one id twice',
      'rules: [{ id: a, limit: 1/s }, { id: a, limit: 2/s }]',
      'centre:1:38 rule "a": id "a" is the id of an earlier rule',
    ],
    [
      'too large',
      `rules: [{ id: a, limit: 1/s }] #${'x'.repeat(4 * 1024 * 1024)}`,
      'centre:1:1: the document is larger than 4 MiB',
    ],
    [
      'of too many rules',
      `rules: [${'{ id: a, limit: 1/s },'.repeat(10_001)}]`,
      'centre:1:8: this list has 10001 things',
    ],
    [
      'of too many rules in JSON',
      JSON.stringify({ rules: Array(10_001).fill({ id: 'a', limit: '1/s' }) }),
      'centre:1:10: this list has 10001 things',
    ],
    ['a bomb of aliases', bomb, 'aliases up to'],
    [
      'about the store',
      'store: { redis: redis://evil }\nrules: [{ id: a, limit: 1/s }]',
      'centre:1:1: store has no place here: a remote document carries rules only',
    ],
    [
      'about who callers are',
      'identify: { account: ip }\nrules: [{ id: a, limit: 1/s }]',
      'identify has no place here',
    ],
    ['about proxies', 'trustProxy: 9\nrules: [{ id: a, limit: 1/s }]', 'trustProxy has no place here'],
    [
      'about another centre',
      'remote: { http: http://evil }\nrules: [{ id: a, limit: 1/s }]',
      'remote has no place here',
    ],
    ['about plugins', 'plugins: [/tmp/evil.mjs]\nrules: [{ id: a, limit: 1/s }]', 'plugins has no place here'],
    ['by somebody unknown here', 'rules: [{ id: a, by: tenant, limit: 1/s }]', 'by "tenant" is not a dimension'],
    [
      'for a store that is not there',
      'rules: [{ id: a, limit: 1/s, count: distributed }]',
      'distributed needs a store',
    ],
  ])('disarms nothing if it is %s', async (_, text, trouble) => {
    const centre = new Centre()
    const { live, after, onRules, remoteStatus } = house({ centre })
    centre.say('rules: [{ id: all, limit: 20/s }]', '1')
    await live.start()
    const before = live.document
    const [source, mistakes] = await after('rejected', () => centre.say(text, '2'))
    expect(live.document).toBe(before)
    expect(onRules).toHaveBeenCalledTimes(1)
    expect(remoteStatus()).toEqual(source)
    expect(source).toMatchObject({ name: 'centre', version: '1', taken: 1, rejected: 1 })
    expect(source.trouble).toContain(trouble)
    expect(formatMistake(mistakes[0]!)).toContain(trouble)
    await after('taken', () => centre.say('rules: [{ id: all, limit: 30/s }]', '3'))
    expect(remoteStatus()).toMatchObject({ version: '3', taken: 2, rejected: 1, trouble: undefined })
  })

  it('at the start leaves the local rules', async () => {
    const centre = new Centre()
    const { live, remoteStatus } = house({ centre })
    centre.say('rules: []')
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus()).toMatchObject({ taken: 0, rejected: 1 })
    expect(remoteStatus().version).toBeUndefined()
  })

  it('is one too where the limiter refuses it', async () => {
    const centre = new Centre()
    const { live, onRules, remoteStatus } = house({ centre })
    onRules.mockImplementationOnce(() => {
      throw new Error('rule "a": this cannot be counted')
    })
    centre.say('rules: [{ id: a, limit: 1/s }]')
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus().trouble).toBe('centre:1:1: rule "a": this cannot be counted')
  })

  it('tells three of many mistakes, and has them all in its event', async () => {
    const centre = new Centre()
    const { live, after } = house({ centre })
    centre.say('rules: [{ id: a, limit: 1/s }]')
    await live.start()
    const text = `rules:\n${Array.from({ length: 9 }, (_, i) => `  - { id: r${i}, limit: ${i} }\n`).join('')}`
    const [source, mistakes] = await after('rejected', () => centre.say(text))
    expect(source.trouble!.split('\n')).toHaveLength(3)
    expect(mistakes).toHaveLength(9)
  })
})

describe('a centre that cannot be reached', () => {
  it('at the start leaves the local rules at once, and is taken when it comes', async () => {
    const centre = new Centre()
    const { live, after, remoteStatus } = house({ centre, startTimeout: '1m' })
    centre.fail('connection refused')
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus()).toMatchObject({ trouble: 'centre: connection refused', taken: 0, rejected: 0 })
    await after('taken', () => centre.say('rules: [{ id: all, limit: 20/s }]'))
    expect(limitsOf(live)).toEqual({ ...localLimits, all: '20/1000 centre' })
    expect(remoteStatus().trouble).toBeUndefined()
  })

  it('delays the start until the timeout and no longer, if it says nothing', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { live } = house({ startTimeout: '2s' })
    let hasStarted = false
    const started = live.start().then(() => {
      hasStarted = true
    })
    await vi.advanceTimersByTimeAsync(1999)
    expect(hasStarted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await started
    expect(limitsOf(live)).toEqual(localLimits)
  })

  it('is not waited for at all where a timeout is longer than any timer, once it answers', async () => {
    const centre = new Centre()
    const { live } = house({ centre, startTimeout: '366d' })
    let hasStarted = false
    const started = live.start().then(() => {
      hasStarted = true
    })
    await turn()
    expect(hasStarted).toBe(false)
    centre.say('rules: [{ id: all, limit: 20/s }]')
    await started
    expect(limitsOf(live).all).toBe('20/1000 centre')
  })

  it('later leaves its last good rules, and says when it is back', async () => {
    const centre = new Centre()
    const { live, after, onRules, remoteStatus } = house({ centre })
    centre.say('rules: [{ id: all, limit: 20/s }]', '1')
    await live.start()
    const [failed] = await after('failure', () => centre.fail('went away'))
    expect(failed).toMatchObject({ trouble: 'centre: went away', version: '1', taken: 1 })
    expect(limitsOf(live).all).toBe('20/1000 centre')
    await after('failure', () => centre.fail('still away'))
    centre.say('rules: [{ id: all, limit: 20/s }]', '1')
    await vi.waitFor(() => expect(remoteStatus().trouble).toBeUndefined())
    expect([onRules.mock.calls.length, centre.watches]).toEqual([1, 3])
  })
})

describe('a snapshot', () => {
  const remoteText = 'rules: [{ id: all, limit: 20/s }]'
  let count = 0
  const newPath = (): string => join(folder, `snapshot-${count++}.json`)

  async function written(path: string, text = remoteText): Promise<string> {
    const centre = new Centre()
    const { live } = house({ centre, snapshot: path })
    centre.say(text, '1')
    await live.start()
    await live.close()
    return path
  }

  function replaceByLink(path: string): void {
    renameSync(path, `${path}.real`)
    symlinkSync(`${path}.real`, path)
  }

  it('keeps the last good document, readable by its owner only, with nothing beside it', async () => {
    const path = await written(newPath())
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ source: 'centre', version: '1', text: remoteText })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter(name => name.endsWith('.new'))).toEqual([])
  })

  it('is in force after a start without the centre, marked as such, until the centre answers', async () => {
    const path = await written(newPath())
    const centre = new Centre()
    const { live, after, remoteStatus } = house({ centre, snapshot: path })
    centre.fail('connection refused')
    await live.start()
    expect(limitsOf(live)).toEqual({ ...localLimits, all: '20/1000 centre' })
    expect(remoteStatus()).toMatchObject({ fromSnapshot: true, version: '1', trouble: 'centre: connection refused' })
    await after('taken', () => centre.say('rules: [{ id: all, limit: 30/s }]', '2'))
    expect(limitsOf(live).all).toBe('30/1000 centre')
    expect(remoteStatus()).toMatchObject({ fromSnapshot: false, version: '2', trouble: undefined })
    await live.close()
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ version: '2' })
  })

  it('loses its mark when the centre says the same', async () => {
    const path = await written(newPath())
    const centre = new Centre()
    const { live, onRules, remoteStatus } = house({ centre, snapshot: path })
    centre.say(remoteText, '5')
    await live.start()
    expect(remoteStatus()).toMatchObject({ fromSnapshot: false, version: '5' })
    expect(onRules).toHaveBeenCalledTimes(1)
  })

  it('stays in force and marked when the centre says nonsense', async () => {
    const path = await written(newPath())
    const centre = new Centre()
    const { live, remoteStatus } = house({ centre, snapshot: path })
    centre.say('')
    await live.start()
    expect(limitsOf(live).all).toBe('20/1000 centre')
    expect(remoteStatus()).toMatchObject({ fromSnapshot: true, rejected: 1 })
    await live.close()
    expect(JSON.parse(readFileSync(path, 'utf8')).text).toBe(remoteText)
  })

  it.each([
    ['is empty', (path: string) => writeFileSync(path, '')],
    ['is half a one', (path: string) => writeFileSync(path, '{"source":"centre","version":"1","text":"rul')],
    ['is of another shape', (path: string) => writeFileSync(path, '{"source":"centre","version":1,"text":[]}')],
    ['is null', (path: string) => writeFileSync(path, 'null')],
    [
      'is another centre’s',
      (path: string) => writeFileSync(path, JSON.stringify({ source: 'other', version: '1', text: remoteText })),
    ],
    [
      'holds rules that cannot be obeyed',
      (path: string) => writeFileSync(path, JSON.stringify({ source: 'centre', version: '1', text: 'rules: []' })),
    ],
    [
      'is huge',
      (path: string) =>
        writeFileSync(
          path,
          JSON.stringify({ source: 'centre', version: '1', text: remoteText, more: 'x'.repeat(33 * 1024 * 1024) }),
        ),
    ],
    ['is a directory', (path: string) => execFileSync('mkdir', [path])],
    ['is a pipe', (path: string) => execFileSync('mkfifo', [path])],
  ])('is ignored with a warning if it %s', async (_, make) => {
    const path = newPath()
    make(path)
    const centre = new Centre()
    const { live, remoteStatus } = house({ centre, snapshot: path, startTimeout: '1m' })
    centre.fail('connection refused')
    const warned = new Promise<Error>(resolve => process.once('warning', resolve))
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus()).toMatchObject({ fromSnapshot: false, taken: 0 })
    expect(await warned).toMatchObject({
      code: 'DIANA_SNAPSHOT_IGNORED',
      message: expect.stringContaining(`the snapshot ${path} is ignored (`),
    })
  })

  it('is no matter if it is not there', async () => {
    const warned = vi.fn()
    process.once('warning', warned)
    const centre = new Centre()
    const { live } = house({ centre, snapshot: newPath(), startTimeout: '1m' })
    centre.fail('connection refused')
    await live.start()
    await turn()
    process.removeListener('warning', warned)
    expect(warned).not.toHaveBeenCalled()
  })

  const foreign = (path: string): void => chownSync(path, 54_321, 54_321)
  it.each<[what: string, spoil: (path: string) => void, reason: string]>([
    ['may be written by its group', (path: string) => chmodSync(path, 0o620), 'others may write'],
    ['may be written by everybody', (path: string) => chmodSync(path, 0o602), 'others may write'],
    ['is behind a symbolic link', replaceByLink, 'ELOOP'],
    // only root can give a file away
    ...(process.getuid?.() === 0
      ? [['belongs to another user', foreign, 'belongs to another user'] as [string, typeof foreign, string]]
      : []),
  ])('is ignored with a warning if it %s', async (_, spoil, reason) => {
    const path = await written(newPath())
    spoil(path)
    const centre = new Centre()
    const { live, remoteStatus } = house({ centre, snapshot: path, startTimeout: '1m' })
    centre.fail('connection refused')
    const warned = new Promise<Error>(resolve => process.once('warning', resolve))
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus()).toMatchObject({ fromSnapshot: false, taken: 0 })
    expect(await warned).toMatchObject({ message: expect.stringMatching(`snapshot ${path} is ignored.*${reason}`) })
  })

  it('is written in the place of a symbolic link, never through it', async () => {
    const path = newPath()
    const target = newPath()
    writeFileSync(target, 'precious')
    symlinkSync(target, path)
    await written(path)
    expect(readFileSync(target, 'utf8')).toBe('precious')
    expect(lstatSync(path).isFile()).toBe(true)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('that cannot be written is told of, and the rules are in force all the same', async () => {
    const centre = new Centre()
    const { live, after, remoteStatus } = house({ centre, snapshot: join(folder, 'no such folder', 'snapshot.json') })
    centre.say(remoteText, '1')
    await after('failure', () => live.start())
    expect(limitsOf(live).all).toBe('20/1000 centre')
    expect(remoteStatus().trouble).toMatch(/^centre: the snapshot .* cannot be written: ENOENT/)
  })

  it('is the last of many documents that come while one is written', async () => {
    const path = newPath()
    const centre = new Centre()
    const { live, events } = house({ centre, snapshot: path })
    for (let version = 1; version <= 50; version++)
      centre.say(`rules: [{ id: all, limit: ${version}/s }]`, `${version}`)
    await live.start()
    await new Promise<void>(resolve => {
      events.on('taken', ({ version }) => version === '50' && resolve())
    })
    await live.close()
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ version: '50' })
  })
})

describe('the local file', () => {
  const remoteText = 'rules: [{ id: all, limit: 20/s }]'

  it('is obeyed when it changes, and the remote rules still win', async () => {
    const centre = new Centre()
    const { live, after, write, localStatus } = house({ centre })
    centre.say(remoteText)
    await live.start()
    const text = 'answer: { status: 429 }\nrules: [{ id: all, limit: 1/s }, { id: new, limit: 2/s }]'
    const [taken] = await after('taken', () => write(text))
    expect(taken).toMatchObject({ role: 'local', taken: 2 })
    expect(limitsOf(live)).toEqual({ all: '20/1000 centre', new: '2/1000 file' })
    expect(live.document.answer.status).toBe(429)
    expect(localStatus().trouble).toBeUndefined()
  })

  it.each([
    ['broken', 'rules: [{ id: all'],
    ['empty', ''],
    ['without rules', 'rules: []'],
  ])('disarms nothing if it is %s', async (_, text) => {
    const centre = new Centre()
    const { live, after, write, replace, path, file, localStatus } = house({ centre })
    centre.say(remoteText)
    await live.start()
    const before = live.document
    await after('rejected', () => replace(text))
    expect(live.document).toBe(before)
    expect(localStatus()).toMatchObject({ version: file.version, taken: 1, rejected: 1 })
    expect(localStatus().trouble).toContain(`${path}:1:`)
    write(local)
    await vi.waitFor(() => expect(localStatus().trouble).toBeUndefined())
    expect(localStatus().taken).toBe(1)
  })

  it('disarms nothing if it is deleted', async () => {
    const { live, after, path } = house()
    void live.start()
    await after('rejected', () => rmSync(path))
    expect(limitsOf(live)).toEqual(localLimits)
  })

  it('is rejected whole where the remote rules cannot be obeyed with it, and taken once they can', async () => {
    const centre = new Centre()
    const text = `identify: { tenant: header:x-tenant }\n${local}`
    const { live, after, write, path } = house({ centre, text })
    centre.say('rules: [{ id: t, by: tenant, limit: 1/s }]')
    await live.start()
    const before = live.document
    const [source] = await after('rejected', () => write('rules: [{ id: all, limit: 99/s }]'))
    expect(live.document).toBe(before)
    expect(source.trouble).toBe(
      `${path}:1:1: the rules of the config centre cannot be obeyed with this document: centre:1:22 rule "t": ` +
        'by "tenant" is not a dimension: write account, device, ip, resource, host, method, header:<name>, query:<name>, cookie:<name>, jwt:<name> or client-certificate:<name>, or define it under identify',
    )
    await after('rules', () => centre.say('rules: [{ id: t, by: ip, limit: 1/s }]'))
    expect(limitsOf(live)).toEqual({ all: '99/1000 file', t: '1/1000 centre' })
    expect(live.sources().map(({ trouble }) => trouble)).toEqual([undefined, undefined])
  })

  it('makes good a remote document that was rejected for want of it', async () => {
    const centre = new Centre()
    const { live, after, write, remoteStatus } = house({ centre })
    centre.say('rules: [{ id: t, by: tenant, limit: 1/s }]', '1')
    await live.start()
    expect(remoteStatus()).toMatchObject({ rejected: 1, taken: 0 })
    await after('rules', () => write(`identify: { tenant: header:x-tenant }\n${local}`))
    expect(limitsOf(live)).toEqual({ ...localLimits, t: '1/1000 centre' })
    expect(remoteStatus()).toMatchObject({ version: '1', taken: 1, trouble: undefined })
  })

  it('and the centre may change a name together, in whatever order', async () => {
    for (const order of ['local first', 'remote first']) {
      const centre = new Centre()
      const { live, after, write } = house({ centre, text: `identify: { tenant: header:x-tenant }\n${local}` })
      centre.say('rules: [{ id: t, by: tenant, limit: 1/s }]')
      await live.start()
      const changes = [
        () => write(`identify: { customer: header:x-tenant }\n${local}`),
        () => centre.say('rules: [{ id: t, by: customer, limit: 1/s }]'),
      ]
      const [first, second] = order === 'local first' ? changes : changes.toReversed()
      await after('rejected', first!)
      await after('rules', second!)
      expect(live.document.rules.at(-1)).toMatchObject({ by: ['customer'] })
    }
  })

  it('cannot name another centre or store while Diana runs', async () => {
    const { live, after, write, replace, path } = house({ text: `store: { redis: redis://127.0.0.1 }\n${local}` })
    void live.start()
    const [source] = await after('rejected', () => write(`store: { redis: redis://127.0.0.2 }\n${local}`))
    const [other] = await after('rejected', () => replace(`store: { redis: redis://127.0.0.1 }\n${local}`))
    expect(other.trouble).toContain('remote is read at the start only')
    expect(source.trouble).toBe(`${path}:1:1: store is read at the start only: leave it as it was, or start Diana anew`)
  })
})

describe('close', () => {
  it('ends a start that waits for the centre, and all that is open', async () => {
    // what earlier tests have left to the disk is not counted
    const open = (): number => process.getActiveResourcesInfo().filter(kind => !kind.startsWith('FSReq')).length
    const before = open()
    const { live } = house({ startTimeout: '1m' })
    const started = live.start()
    await live.close()
    await started
    expect(open()).toBe(before)
  })

  it('hears nothing more of its sources', async () => {
    const centre = new Centre()
    const { live, onRules, write } = house({ centre })
    centre.say('rules: [{ id: all, limit: 20/s }]')
    await live.start()
    await live.close()
    centre.say('rules: [{ id: all, limit: 30/s }]')
    write('rules: [{ id: all, limit: 40/s }]')
    await turn()
    expect(onRules).toHaveBeenCalledTimes(1)
  })

  it('leaves behind a source that does not listen', async () => {
    const deaf: Source = {
      name: 'deaf',
      async *watch() {
        await new Promise(() => {})
      },
    }
    const { live } = house({ centre: deaf, startTimeout: '1m' })
    const started = live.start()
    await live.close()
    await started
  })
})
