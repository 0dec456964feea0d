import { EventEmitter, once } from 'node:events'
import type { Limiter, RuleOptions, SourceDocument, SourceKind } from '../../../packages/limiter/src/index.ts'

/** A config center in this process, whose rules a test changes. */
export class RulesCenter {
  /** The options of limiters that take their rules from it. */
  readonly options: {
    readonly rules: readonly RuleOptions[]
    readonly remote: { readonly center: 'here' }
    readonly sources: readonly SourceKind[]
  }
  readonly #documents: SourceDocument[] = []
  readonly #sent = new EventEmitter()

  constructor(...rules: readonly object[]) {
    const source = { name: 'center', watch: () => this.#watch() }
    this.options = {
      rules: [],
      remote: { center: 'here' },
      sources: [{ name: 'center', options: {}, create: () => source }],
    }
    this.send(rules)
  }

  /** Sends other rules. */
  send(rules: readonly object[]): void {
    this.#documents.push({ text: JSON.stringify({ rules }), version: String(this.#documents.length + 1) })
    this.#sent.emit('document')
  }

  /** Sends other rules, and returns when the limiters have taken them. */
  async change(limiters: readonly Limiter[], ...rules: readonly object[]): Promise<void> {
    const taken = Promise.all(limiters.map(limiter => once(limiter.events, 'rules')))
    this.send(rules)
    await taken
  }

  async *#watch(): AsyncGenerator<SourceDocument> {
    for (let next = this.#documents.length - 1; ; ) {
      while (next < this.#documents.length) yield this.#documents[next++]!
      await once(this.#sent, 'document')
    }
  }
}
