import { DianaError } from '../errors.ts'
import { editRule } from '../rules/edit/edit-rule.ts'
import { formatMistake, type Mistake } from '../rules/mistake.ts'
import type { Vocabulary } from '../rules/parse.ts'
import { parseRemote } from '../rules/parse-text.ts'
import type { Rule, RuleDocument } from '../rules/rule.ts'
import type { RemoteOptions } from '../rules/yaml/read-document.ts'

/** A changed rule that runs in shadow beside the one it would replace. */
export interface Trial {
  /** The id of its statistics, which no rule of a document can have. */
  readonly id: string
  readonly rule: string
  readonly text: string
  /** Milliseconds since 1970. */
  readonly since: number
}

const mostTrials = 20

/** Rules on trial: in memory only, counted in this process, refusing no call. */
export class Trials {
  readonly #trials = new Map<string, { readonly trial: Trial; readonly rule: Rule }>()

  get list(): readonly Trial[] {
    return [...this.#trials.values()].map(({ trial }) => trial)
  }

  get rules(): readonly Rule[] {
    return [...this.#trials.values()].map(({ rule }) => rule)
  }

  /** Parses a rule and runs it as a trial, replacing an earlier one; throws BAD_RULES if it cannot be used. */
  add(rule: string, text: string, local: RuleDocument, vocabulary: Vocabulary, since: number): Trial {
    const id = `${rule}~trial`
    if (this.#trials.size >= mostTrials && !this.#trials.has(id)) {
      throw new DianaError('BAD_RULES', `${mostTrials} rules are on trial already: end one first`)
    }
    const { document, mistakes } = readRule(text, local, vocabulary)
    const [read] = document?.rules ?? []
    if (!read) throw new DianaError('BAD_RULES', mistakes.map(formatMistake).join('\n') || 'it holds no rule')
    const trial = { id, rule, text, since }
    this.#trials.set(id, {
      trial,
      rule: { ...read, id, enabled: true, whenFull: 'shadow', count: 'local', origin: 'trial' },
    })
    return trial
  }

  remove(id: string): boolean {
    return this.#trials.delete(id)
  }
}

/** Reads one rule by itself, its lines counted from its own first one. */
export function readRule(
  text: string,
  local: RuleDocument,
  vocabulary: Vocabulary,
  options?: RemoteOptions,
): { readonly document?: RuleDocument | undefined; readonly mistakes: readonly Mistake[] } {
  const { document, mistakes } = parseRemote(editRule('', '', text) ?? '', 'rule', vocabulary, local, options)
  return {
    document,
    mistakes: mistakes.map(mistake => {
      return { ...mistake, line: Math.max(1, mistake.line - 1), column: Math.max(1, mistake.column - 4) }
    }),
  }
}
