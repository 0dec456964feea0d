import { isDeepStrictEqual } from 'node:util'
import type { GivenFunctions } from '../dimensions/reading/given-functions.ts'
import { DianaError } from '../errors.ts'
import { formatMistake, type Mistake } from '../rules/mistake.ts'
import { type Parsed, parseRule, type Vocabulary } from '../rules/parse.ts'
import type { Rule, RuleDocument } from '../rules/rule.ts'
import type { RuleOptions } from '../rules/schema/options.ts'
import { MAX_RULES } from '../rules/schema/schema.ts'
import type { Source, SourceDocument } from '../sources/source.ts'
import type { DocumentTasks } from './document-tasks.ts'
import type { DocumentThread } from './document-thread.ts'
import { Origin, type OriginListener, type SourceStatus } from './source-state.ts'

/** The reports of LiveRules to the engine. */
export interface RuleListener extends OriginListener {
  /** Puts a new set of rules in force. May throw: then the old one stays. */
  onRules(document: RuleDocument): void
}

export interface LiveRulesOptions {
  readonly document: RuleDocument
  /** The rule file that the document was read from; undefined if it was given in code. */
  readonly file?: { readonly path: string; readonly version: string; readonly text?: string } | undefined
  readonly remote?: Source | undefined
  readonly vocabulary: Vocabulary
  /** The thread in which long documents are read; this one unless given. */
  readonly thread?: DocumentThread | undefined
  /** Functions that rules given in code use instead of names. */
  readonly given?: Pick<GivenFunctions, 'dimension' | 'isEmpty'> | undefined
}

interface LocalDocument {
  readonly document: RuleDocument
  readonly text?: string | undefined
  readonly version?: string | undefined
}

/** Documents that are in force together; the remote one as text, since its meaning depends on the local one. */
interface Pair {
  readonly local: LocalDocument
  readonly remote?: SourceDocument | undefined
}

/** A timer that is set for longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
/** Several people may work on the document at once. */
const MOST_READ = 3

/** The origin of rules that the program itself has added. */
const IN_CODE = 'code'

/** Keeps the rules of all sources in force: remote rules replace local ones by id, and the last good documents stay. */
export class LiveRules {
  readonly #parts: LiveRulesOptions
  readonly #listener: RuleListener
  readonly #ending = new AbortController()
  readonly #local: Origin
  readonly #remote: Origin
  #document: RuleDocument
  #inForce: Pair
  /** The newest document of each side, while it is valid by itself but not together with the other side. */
  #waitingLocal: LocalDocument | undefined
  #waitingRemote: SourceDocument | undefined
  /** Rules that the program itself has added, with their options. */
  readonly #added = new Map<string, { readonly words: RuleOptions; readonly rule: Rule }>()
  #writing: Promise<void> | undefined
  /** The last parsed document of each side, so that a long text is parsed once. */
  readonly #readLocal = new Map<string, Parsed>()
  #readRemote: { readonly text: string; readonly local: RuleDocument; readonly parsed: Parsed } | undefined
  /** The rule file, once it is followed. */
  #file: Source | undefined
  /** Parses texts. Loaded with the first of them: rules that are given in code need no YAML. */
  #tasks: DocumentTasks | undefined
  /** The number of documents that were put in force by a write. */
  #heard = 0

  constructor(parts: LiveRulesOptions, listener: RuleListener) {
    const { document, file, remote } = parts
    this.#parts = parts
    this.#listener = listener
    this.#local = new Origin(file?.path ?? 'options', 'local', listener)
    this.#remote = new Origin(remote?.name ?? 'remote', 'remote', listener)
    this.#inForce = { local: { document, version: file?.version, text: file?.text } }
    this.#document = { ...document, rules: from(document.rules, this.#local.name) }
    this.#local.take(file?.version)
  }

  /** Follows the sources; resolves when the config center has answered or failed, or its timeout is over. */
  async start(): Promise<void> {
    const { file, remote, document } = this.#parts
    const { signal } = this.#ending
    if (!file && !remote) return
    await this.#loadTasks()
    const { fileSource } = await import('../sources/file.ts')
    const { follow } = await import('../sources/client/follow.ts')
    if (signal.aborted) return
    if (file) {
      const onDocument = (said: SourceDocument) => this.#whenRead('local', said, () => this.#onLocal(said))
      const onError = (error: Error) => this.#local.fail(error)
      this.#file = fileSource(file.path)
      void follow(this.#file, { onDocument, onError }, signal)
    }
    if (!remote || !document.remote) return
    const { startTimeoutMs } = document.remote
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, Math.min(startTimeoutMs, LONGEST_TIMER_MS))
      const begin = (): void => {
        clearTimeout(timer)
        resolve()
      }
      signal.addEventListener('abort', begin, { once: true })
      void this.#followRemote(remote, begin)
    })
  }

  async close(): Promise<void> {
    this.#ending.abort()
    await this.#parts.thread?.close()
    await this.#writing
  }

  /** The rules in force, each with where it came from. */
  get document(): RuleDocument {
    return this.#document
  }

  /** Adds a rule in code, parsed by `read`; a rule of a source with its id wins. Throws if the rule cannot be used. */
  add(words: RuleOptions, read: unknown): void {
    const known = this.#added.get(words?.id)
    if (known) {
      if (isDeepStrictEqual(known.words, words)) return
      throw new DianaError('BAD_RULES', `rule "${words.id}" was added with other options: give each rule its own id`)
    }
    if (this.#document.rules.length >= MAX_RULES) {
      throw new DianaError('BAD_RULES', `there are ${MAX_RULES} rules already: use fewer`)
    }
    const { rule, mistakes } = parseRule(read, this.#vocabularyInCode(), this.#inForce.local.document)
    if (!rule) throw new DianaError('BAD_RULES', mistakes.map(formatMistake).join('\n'))
    this.#added.set(rule.id, { words, rule })
    try {
      const document = { ...this.#document, rules: withAdded(this.#document.rules, [rule]) }
      this.#listener.onRules(document)
      this.#document = document
    } catch (error) {
      this.#added.delete(rule.id)
      throw error
    }
  }

  /** Removes a rule that was added in code; false if there is none with this id. */
  remove(id: string): boolean {
    const added = this.#added.get(id)
    if (added === undefined) return false
    this.#added.delete(id)
    const rules = this.#document.rules.filter(rule => rule.id !== id || rule.origin !== IN_CODE)
    if (rules.length === this.#document.rules.length) return true
    const document = { ...this.#document, rules }
    try {
      this.#listener.onRules(document)
    } catch (error) {
      this.#added.set(id, added)
      throw error
    }
    this.#document = document
    return true
  }

  #vocabularyInCode(): Vocabulary {
    const { vocabulary, given } = this.#parts
    return given && !given.isEmpty
      ? { ...vocabulary, dimensions: [...vocabulary.dimensions, given.dimension] }
      : vocabulary
  }

  sources(): SourceStatus[] {
    return this.#parts.remote ? [this.#local.status, this.#remote.status] : [this.#local.status]
  }

  /** Returns the source of one side's document; undefined if it was given in code, or there is none. */
  sourceOf(where: SourceStatus['role']): Source | undefined {
    return where === 'remote' ? this.#parts.remote : this.#file
  }

  /** Returns the text of one side in force; undefined if it was given in code, or there is none yet. */
  textOf(where: SourceStatus['role']): string | undefined {
    return this.#inForce[where]?.text
  }

  /** Parses a long text in a thread, so that the next operation on it need not wait. */
  async prepare(where: SourceStatus['role'], text: string): Promise<void> {
    await this.#loadTasks()
    const { thread } = this.#parts
    if (!thread) return
    if (where === 'local' && thread.takes(text) && !this.#readLocal.has(text)) {
      this.#readLocal.set(text, await thread.run('parseLocal', text, this.#local.name))
      const [oldest] = this.#readLocal.keys()
      if (this.#readLocal.size > MOST_READ) this.#readLocal.delete(oldest!)
    }
    const remote = where === 'remote' ? text : this.#inForce.remote?.text
    const local = where === 'remote' ? this.#inForce.local.document : this.#parseLocal(text).document
    if (remote === undefined || local === undefined || !thread.takes(remote)) return
    if (this.#readRemote?.text === remote && this.#readRemote.local === local) return
    // of the local rules, only the addresses matter that remote ones may name too
    const alone = { ...local, rules: local.rules.filter(({ plans }) => plans?.from), sections: undefined }
    const parsed = await thread.run('parseRemote', remote, this.#remote.name, alone)
    const rules = parsed.document?.rules
    this.#readRemote = { text: remote, local, parsed: rules ? { document: { ...local, rules }, mistakes: [] } : parsed }
  }

  async #loadTasks(): Promise<void> {
    const { createDocumentTasks } = await import('./document-tasks.ts')
    this.#tasks ??= createDocumentTasks(this.#parts.vocabulary)
    await this.#parts.thread?.load()
  }

  #parseLocal(text: string): Parsed {
    return this.#readLocal.get(text) ?? this.#tasks!.parseLocal(text, this.#local.name)
  }

  #parseRemote(text: string, local: RuleDocument): Parsed {
    if (this.#readRemote?.text === text && this.#readRemote.local === local) return this.#readRemote.parsed
    return this.#tasks!.parseRemote(text, this.#remote.name, local)
  }

  /** Applies a document of a source: at once if it is short, and otherwise when it has been parsed. */
  #whenRead(where: SourceStatus['role'], { text }: SourceDocument, take: () => void): void | Promise<void> {
    if (!this.#parts.thread?.takes(text) || text === this.#inForce[where]?.text) {
      take()
      return
    }
    const heard = this.#heard
    return this.prepare(where, text).then(() => {
      // a document that was written meanwhile is newer, and its source will report it
      if (heard === this.#heard && !this.#ending.signal.aborted) take()
    })
  }

  /** Returns the rules that would be in force with this prepared document on one side, or its mistakes; changes nothing. */
  consider(where: SourceStatus['role'], text: string): Parsed {
    const { local, remote } = this.#inForce
    if (where === 'remote') return this.#merge({ local, remote: { text, version: '' } })
    const parsed = this.#parseLocal(text)
    if (parsed.document === undefined) return parsed
    const mistake = this.#unchangeable(parsed.document)
    return mistake ? { mistakes: [mistake] } : this.#merge({ local: { document: parsed.document }, remote })
  }

  /** This prepared document was just written to its source: it is applied without waiting for the source to report it. */
  hear(where: SourceStatus['role'], document: SourceDocument): void {
    this.#heard += 1
    if (where === 'local') this.#onLocal(document)
    else this.#onRemote(document)
  }

  async #followRemote(remote: Source, onAnswer: () => void): Promise<void> {
    const { signal } = this.#ending
    const { follow } = await import('../sources/client/follow.ts')
    const { pause } = await import('../sources/client/pause.ts')
    const { snapshot, startTimeoutMs = 0 } = this.#parts.document.remote ?? {}
    if (snapshot !== undefined) {
      // a disk that hangs must not delay the config center
      await Promise.race([this.#recall(snapshot), pause(startTimeoutMs, signal, { ref: false })])
    }
    const onDocument = async (document: SourceDocument): Promise<void> => {
      try {
        await this.#whenRead('remote', document, () => this.#onRemote(document))
      } finally {
        onAnswer()
      }
    }
    const onError = (error: Error): void => {
      this.#remote.fail(error)
      onAnswer()
    }
    await follow(remote, { onDocument, onError }, signal)
  }

  /** Applies the last document of the config center before the restart, until the center answers. */
  async #recall(path: string): Promise<void> {
    const ignore = (reason: string, remedy: string): void => {
      process.emitWarning(`the snapshot ${path} is ignored (${reason}): ${remedy}`, { code: 'DIANA_SNAPSHOT_IGNORED' })
    }
    const { readSnapshot } = await import('./snapshot.ts')
    const snapshot = await readSnapshot(path, ignore)
    if (!snapshot || this.#inForce.remote) return
    const { source, text, version } = snapshot
    if (source !== this.#remote.name) {
      ignore(
        `it is of ${source}, not of ${this.#remote.name}`,
        'name another file for each config center, or remove it',
      )
      return
    }
    const pair = { local: this.#inForce.local, remote: { text, version } }
    const [mistake] = this.#take(pair, this.#remote, { fromSnapshot: true })
    if (mistake) ignore(formatMistake(mistake), 'its rules cannot be used with the local ones; remove it')
  }

  readonly #onLocal = ({ text, version }: SourceDocument): void => {
    this.#waitingLocal = undefined
    if (version === this.#inForce.local.version) {
      this.#local.confirm(version)
      return
    }
    const mistakes = this.#tryLocal(text, version)
    if (mistakes.length > 0) this.#local.reject(mistakes)
  }

  #tryLocal(text: string, version: string): readonly Mistake[] {
    const origin = this.#local
    const { document, mistakes } = this.#parseLocal(text)
    if (document === undefined) return mistakes
    const { remote } = this.#inForce
    const mistake = this.#unchangeable(document)
    if (mistake) return [mistake]
    const local = { document, version, text }
    if (this.#waitingRemote && this.#take({ local, remote: this.#waitingRemote }, origin).length === 0) return []
    const [first] = this.#take({ local, remote }, origin)
    if (first === undefined) return []
    this.#waitingLocal = local
    if (first.file === origin.name) return [first]
    return [origin.mistake(`the rules of the config center cannot be used with this document: ${formatMistake(first)}`)]
  }

  #unchangeable(document: RuleDocument): Mistake | undefined {
    const old = this.#inForce.local.document
    const word = (['remote', 'store', 'plugins'] as const).find(one => !isDeepStrictEqual(document[one], old[one]))
    return word && this.#local.mistake(`${word} is read at the start only: leave it as it was, or start Diana anew`)
  }

  #onRemote(remote: SourceDocument): void {
    const { local } = this.#inForce
    this.#waitingRemote = undefined
    if (remote.isMissing) {
      this.#onMissing()
      return
    }
    if (remote.text === this.#inForce.remote?.text) {
      this.#inForce = { local, remote }
      this.#remote.confirm(remote.version)
      return
    }
    if (this.#waitingLocal && this.#take({ local: this.#waitingLocal, remote }, this.#remote).length === 0) return
    const mistakes = this.#take({ local, remote }, this.#remote)
    if (mistakes.length === 0) return
    this.#waitingRemote = remote
    this.#remote.reject(mistakes)
  }

  /** Processes that start now find no document either, so running ones use the same rules: the local ones. */
  #onMissing(): void {
    const { local, remote } = this.#inForce
    if (remote === undefined) {
      this.#remote.miss()
      return
    }
    if (this.#waitingLocal && this.#take({ local: this.#waitingLocal }, this.#remote).length === 0) return
    const mistakes = this.#take({ local }, this.#remote)
    if (mistakes.length > 0) this.#remote.reject(mistakes)
  }

  /** Puts a pair of documents in force, whole; or returns its mistakes, and changes nothing. */
  #take(pair: Pair, news: Origin, options: { readonly fromSnapshot?: boolean } = {}): readonly Mistake[] {
    const { document, mistakes } = this.#merge(pair)
    if (document === undefined) return mistakes
    try {
      this.#listener.onRules(document)
    } catch (error) {
      return [news.mistake(error instanceof Error ? error.message : String(error))]
    }
    const before = this.#inForce
    this.#inForce = pair
    this.#document = document
    if (pair.local === this.#waitingLocal) this.#waitingLocal = undefined
    if (pair.remote === this.#waitingRemote) this.#waitingRemote = undefined
    if (pair.local !== before.local) this.#local.take(pair.local.version)
    if (pair.remote === undefined && before.remote !== undefined) this.#remote.miss()
    else if (pair.remote !== before.remote) this.#remote.take(pair.remote?.version, options)
    this.#remember(options)
    return []
  }

  #merge({ local: { document }, remote }: Pair): Parsed {
    const own = from(document.rules, this.#local.name)
    const added = [...this.#added.values()].map(({ rule }) => rule)
    if (remote === undefined) return { document: { ...document, rules: withAdded(own, added) }, mistakes: [] }
    const { name } = this.#remote
    const parsed = this.#parseRemote(remote.text, document)
    if (parsed.document === undefined) return parsed
    const rules = overlay(own, from(parsed.document.rules, name))
    return { document: { ...document, rules: withAdded(rules, added) }, mistakes: [] }
  }

  #remember({ fromSnapshot = false }: { readonly fromSnapshot?: boolean }): void {
    const path = this.#parts.document.remote?.snapshot
    if (path !== undefined && !fromSnapshot) this.#writing ??= this.#write(path)
  }

  /** Writes the last document of the config center; while it writes, another may come. */
  async #write(path: string): Promise<void> {
    const source = this.#remote.name
    const { removeSnapshot, writeSnapshot } = await import('./snapshot.ts')
    let isWritten = (_: SourceDocument | undefined): boolean => false
    while (!isWritten(this.#inForce.remote)) {
      const document = this.#inForce.remote
      isWritten = remote => remote === document
      const done = document
        ? writeSnapshot(path, { source, text: document.text, version: document.version })
        : removeSnapshot(path)
      await done.catch(({ message }: Error) => {
        this.#remote.fail(new Error(`the snapshot ${path} cannot be written: ${message}`))
      })
    }
    this.#writing = undefined
  }
}

/** Returns local rules, replaced by remote ones with the same id, and followed by the other remote rules. */
export function overlay(local: readonly Rule[], remote: readonly Rule[]): Rule[] {
  const winning = new Map(remote.map(rule => [rule.id, rule]))
  const replaced = local.map(rule => winning.get(rule.id) ?? rule)
  const known = new Set(local.map(rule => rule.id))
  return [...replaced, ...remote.filter(rule => !known.has(rule.id))]
}

function from(rules: readonly Rule[], origin: string): Rule[] {
  return rules.map(rule => ({ ...rule, origin }))
}

/** Returns the rules, followed by those that the program added, unless another rule has their id. */
function withAdded(rules: readonly Rule[], added: readonly Rule[]): readonly Rule[] {
  if (added.length === 0) return rules
  const known = new Set(rules.map(rule => rule.id))
  return [
    ...rules,
    ...from(
      added.filter(rule => !known.has(rule.id)),
      IN_CODE,
    ),
  ]
}
