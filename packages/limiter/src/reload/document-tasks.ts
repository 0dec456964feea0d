import { type EditedRule, editOptions, type OptionChange } from '../rules/edit/edit-options.ts'
import { editRule, ruleTextsOf } from '../rules/edit/edit-rule.ts'
import { type DocumentChange, documentChange, noteChanges } from '../rules/edit/rule-changes.ts'
import type { Parsed, Vocabulary } from '../rules/parse.ts'
import { parseRemote, parseText } from '../rules/parse-text.ts'
import type { RuleDocument } from '../rules/rule.ts'

/** Tasks that take long with a long document; arguments and results are plain values, so that a thread can run them. */
export interface DocumentTasks {
  parseLocal(text: string, file: string): Parsed
  parseRemote(text: string, file: string, local: RuleDocument): Parsed
  editRule(text: string, id: string, ruleText: string | undefined): string | undefined
  editOptions(text: string, id: string | undefined, changes: readonly OptionChange[]): EditedRule | undefined
  ruleTextsOf(text: string): ReadonlyMap<string, string>
  documentChange(before: string, after: string): DocumentChange
  noteChanges(before: string, after: string, comment: string): string | undefined
}

/** The settings that a thread is started with: the sections it must know, by the module that exports each. */
export interface DocumentThreadSettings {
  readonly sections?: readonly { readonly module: string; readonly name: string }[] | undefined
}

export interface TaskQuestion {
  readonly id: number
  readonly task: keyof DocumentTasks
  readonly given: readonly unknown[]
}

/** `failed` says that the task could not be done there, or its result not be sent. */
export interface TaskAnswer {
  readonly id: number
  readonly result?: unknown
  readonly failed?: string | undefined
}

export function createDocumentTasks(vocabulary: Vocabulary): DocumentTasks {
  return {
    parseLocal: (text, file) => parseText(text, file, vocabulary),
    parseRemote: (text, file, local) => parseRemote(text, file, vocabulary, local),
    editRule,
    editOptions,
    ruleTextsOf,
    documentChange,
    noteChanges,
  }
}
