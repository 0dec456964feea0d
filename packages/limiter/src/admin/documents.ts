import { DianaError } from '../errors.ts'
import type { DocumentThread } from '../reload/document-thread.ts'
import type { LiveRules } from '../reload/live-rules.ts'
import type { SourceStatus } from '../reload/source-state.ts'
import type { EditedRule, OptionChange } from '../rules/edit/edit-options.ts'
import type { DocumentChange } from '../rules/edit/rule-changes.ts'
import type { Mistake } from '../rules/mistake.ts'
import type { Vocabulary } from '../rules/parse.ts'
import type { RuleDocument } from '../rules/rule.ts'
import type { Source, SourceDocument } from '../sources/source.ts'
import { readRule } from './trials.ts'

/** One of the two documents: the rule file, or the config center's. */
export type Where = SourceStatus['role']

/** A rule document of a source, and whether it can be written there. */
export interface StoredDocument {
  readonly text: string
  readonly version: string
  /** For people: the file's path, or the center and its key. */
  readonly name: string
  readonly writable: boolean
  /** The reason why it cannot be written. */
  readonly reason?: string | undefined
}

const timeoutMs = 10_000
const mostNewRules = 1000

/** Reads, checks and writes the documents that the rules come from; a document that cannot be used is never written. */
export class Documents {
  readonly #live: LiveRules
  readonly #assertUsable: (document: RuleDocument) => Promise<void>
  readonly #vocabulary: Vocabulary
  readonly #thread: DocumentThread
  #lastWrite: Promise<unknown> = Promise.resolve()
  /** The last document that was found valid, and together with which rules: a write checks it twice. */
  #good: { where: Where; text: string; beside: RuleDocument } | undefined

  /** @internal `assertUsable` throws if a valid document cannot be put in force in this process. */
  constructor(
    live: LiveRules,
    vocabulary: Vocabulary,
    thread: DocumentThread,
    assertUsable: (document: RuleDocument) => Promise<void>,
  ) {
    this.#live = live
    this.#vocabulary = vocabulary
    this.#thread = thread
    this.#assertUsable = assertUsable
  }

  async read(where: Where): Promise<StoredDocument> {
    const source = this.#live.sourceOf(where)
    if (!source) return absent(where)
    const { text, version } = await readOnce(source)
    const stored = { text, version, name: source.name, writable: source.write !== undefined }
    return stored.writable
      ? stored
      : { ...stored, reason: `Diana only reads ${source.name}: change the document there` }
  }

  /** Returns the text of each rule in force that came from one side, by its id. */
  async ruleTexts(where: Where): Promise<ReadonlyMap<string, string>> {
    const text = this.#live.textOf(where)
    return text === undefined ? new Map() : this.#thread.run('ruleTextsOf', text)
  }

  /** Returns what is wrong with a text, if it stood there. */
  async check(where: Where, text: string): Promise<readonly Mistake[]> {
    await this.#live.prepare(where, text)
    const { document: beside } = this.#live
    if (this.#good?.text === text && this.#good.where === where && this.#good.beside === beside) return []
    const mistakes = await this.#check(where, text)
    if (mistakes.length === 0) this.#good = { where, text, beside }
    return mistakes
  }

  async #check(where: Where, text: string): Promise<readonly Mistake[]> {
    const { document, mistakes } = this.#live.consider(where, text)
    if (document === undefined) return mistakes
    try {
      assertNoNewFiles(document, this.#live.document)
      await this.#assertUsable(document)
      return []
    } catch (error) {
      return [{ file: where, line: 1, column: 1, message: error instanceof Error ? error.message : String(error) }]
    }
  }

  /** Returns the id of one rule's text by itself, or what is wrong with it, its lines counted from its own first one. */
  checkRule(text: string): { readonly id?: string | undefined; readonly mistakes: readonly Mistake[] } {
    const { document, mistakes } = readRule(text, this.#live.document, this.#vocabulary, { anyAddress: true })
    return { id: document?.rules[0]?.id, mistakes }
  }

  /** Returns the rules that would be in force if a text stood there. */
  async consider(where: Where, text: string): Promise<RuleDocument | undefined> {
    await this.#live.prepare(where, text)
    return this.#live.consider(where, text).document
  }

  /** Returns the text of a document with one rule changed, added, or taken out (`ruleText` undefined). */
  async edit(text: string, id: string, ruleText: string | undefined): Promise<string> {
    const edited = await this.#thread.run('editRule', text, id, ruleText)
    if (edited !== undefined) return edited
    const remedy =
      ruleText === undefined ? `there is no rule "${id}" in it` : 'it has no list of rules: write rules: there'
    throw new DianaError('BAD_RULES', `the document cannot be changed: ${remedy}`)
  }

  /**
   * Returns the text of a document with some options of one rule changed, or with a new rule if `id` is undefined; all other text
   * stays as it is. Throws BAD_RULES if that cannot be done.
   */
  async editOptions(text: string, id: string | undefined, changes: readonly OptionChange[]): Promise<EditedRule> {
    const edited = await this.#thread.run('editOptions', text, id, changes)
    if (edited !== undefined) return edited
    const remedy =
      id === undefined
        ? 'it has no list of rules, or one that a rule cannot be added to: change it as text'
        : `there is no rule "${id}" in it that can be changed by itself: change it as text`
    throw new DianaError('BAD_RULES', `the document cannot be changed: ${remedy}`)
  }

  /** Lists which rules were added, changed and removed between two texts of a document. */
  change(before: string, after: string): Promise<DocumentChange> {
    return this.#thread.run('documentChange', before, after)
  }

  /** Returns the later text with a comment above each rule that was added or changed; undefined if it cannot stand there. */
  note(before: string, after: string, comment: string): Promise<string | undefined> {
    return this.#thread.run('noteChanges', before, after, comment)
  }

  /**
   * Replaces the version that was read with a text, puts its rules in force, and returns the new version. Throws
   * BAD_RULES if it cannot be used, CONFLICT if it was changed since, READ_ONLY if it cannot be written.
   */
  async write(where: Where, text: string, version: string): Promise<string> {
    const writing = this.#lastWrite.then(() => this.#write(where, text, version))
    // one after another, so that two writers of this process never overlap
    this.#lastWrite = writing.catch(() => undefined)
    return writing
  }

  /** Rules are put in force between two calls, which wait meanwhile. */
  #assertSwift(document: RuleDocument | undefined): void {
    const most = Math.max(mostNewRules, this.#live.document.rules.length)
    const count = document?.rules.length ?? 0
    if (count <= most) return
    const remedy = `at most ${most} are put in force this way, since calls wait meanwhile; change the document at its source`
    throw new DianaError('BAD_RULES', `there would be ${count} rules: ${remedy}`)
  }

  async #write(where: Where, text: string, version: string): Promise<string> {
    const source = this.#live.sourceOf(where)
    if (!source?.write) throw new DianaError('READ_ONLY', (await this.read(where)).reason ?? 'it cannot be written')
    const [mistake] = await this.check(where, text)
    if (mistake) throw new DianaError('BAD_RULES', mistake.message)
    this.#assertSwift(await this.consider(where, text))
    const base = await readOnce(source)
    if (base.version !== version) {
      throw new DianaError(
        'CONFLICT',
        `${source.name}: was changed since it was read; read it again and repeat the change`,
      )
    }
    const written = await source.write(text, base, AbortSignal.timeout(timeoutMs))
    await this.#live.prepare(where, text)
    this.#live.hear(where, { text, version: written })
    if (this.#live.textOf(where) === text) return written
    const remedy = 'the status of its source says why; write it anew'
    throw new DianaError('BAD_RULES', `${source.name}: was written, but is not in force: ${remedy}`)
  }
}

/** Throws if a remote writer of a document chooses which files of this machine are read. */
function assertNoNewFiles(document: RuleDocument, inForce: RuleDocument): void {
  const known = inForce.jwt?.keys ?? []
  const added = document.jwt?.keys.find(key => key.startsWith('file:') && !known.includes(key))
  if (added === undefined) return
  const remedy = 'write it into the rule file on the machine itself'
  throw new DianaError('BAD_RULES', `jwt.key names the file ${added.slice(5)}, which is not in force: ${remedy}`)
}

function absent(where: Where): StoredDocument {
  const reason =
    where === 'local'
      ? 'the rules were given in code, not in a file: change them there'
      : 'there is no config center: name one under remote: in the rule file'
  return { text: '', version: '', name: where === 'local' ? 'options' : 'remote', writable: false, reason }
}

async function readOnce(source: Source): Promise<SourceDocument> {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), timeoutMs)
  try {
    for await (const document of source.watch(controller.signal)) return document
  } finally {
    clearTimeout(timer)
    controller.abort()
  }
  throw new DianaError('SOURCE_FAILED', `${source.name}: gave no answer within ${timeoutMs / 1000} s`)
}
