import { type Signal, signal } from '@preact/signals'
import type { RuleDocument, Where } from '../api/types.ts'

/** What is being written, and the document it was read from. Kept beside the views, so that looking elsewhere loses nothing. */
export interface Draft {
  readonly base: RuleDocument
  readonly text: string
}

export const drafts: Record<Where, Signal<Draft | undefined>> = {
  local: signal(undefined),
  remote: signal(undefined),
}

export function isChanged(draft: Draft | undefined): boolean {
  return draft !== undefined && draft.text !== draft.base.text
}

addEventListener('beforeunload', event => {
  if (Object.values(drafts).some(({ value }) => isChanged(value))) event.preventDefault()
})
