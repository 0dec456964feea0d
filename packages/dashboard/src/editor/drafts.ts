import { type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { RuleDocument, Where } from '../api/generated.ts'

/** A text in the editor, and the document that it was read from. */
export interface Draft {
  readonly base: RuleDocument
  readonly text: string
}

/**
 * The text of one document while it is written, kept beside the views, so that looking elsewhere loses nothing. Text flows
 * one way: what is typed goes from the editor to the draft and is never written back. Only `replace` changes the editor's
 * text, at once and not with the next render, by which time more may have been typed.
 */
export class DraftKeeper {
  readonly #draft: Signal<Draft | undefined> = signal(undefined)
  #setText: ((text: string) => void) | undefined

  get draft(): ReadonlySignal<Draft | undefined> {
    return this.#draft
  }

  /** Notes the text that was typed. */
  typed(text: string): void {
    const draft = this.#draft.peek()
    if (draft && draft.text !== text) this.#draft.value = { ...draft, text }
  }

  /** Notes that the text is at its source now, under a new version. */
  saved(base: RuleDocument): void {
    const text = this.#draft.peek()?.text ?? base.text
    this.#draft.value = { base, text }
  }

  /** Replaces the typed text by another one. */
  replace(base: RuleDocument, text: string): void {
    this.#draft.value = { base, text }
    this.#setText?.(text)
  }

  /** Shows the draft in an editor from now on; returns a function that ends this. */
  attach(setText: (text: string) => void): () => void {
    this.#setText = setText
    return () => {
      if (this.#setText === setText) this.#setText = undefined
    }
  }
}

export const drafts: Record<Where, DraftKeeper> = { local: new DraftKeeper(), remote: new DraftKeeper() }

export function isChanged(draft: Draft | undefined): boolean {
  return draft !== undefined && draft.text !== draft.base.text
}

addEventListener('beforeunload', event => {
  if (Object.values(drafts).some(({ draft }) => isChanged(draft.value))) event.preventDefault()
})
