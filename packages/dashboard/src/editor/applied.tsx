import type { JSX } from 'preact'
import type { Where } from '../api/generated.ts'
import { viewMessages } from '../i18n/views/index.ts'

/** A change that is in force: the text before it and with it. */
export interface AppliedChange {
  readonly where: Where
  readonly before: string
  readonly after: string
}

/** Says that a change is in force, and offers to take it back. */
export function Applied({
  text,
  onUndo,
}: {
  readonly text: string
  readonly onUndo: (() => void) | undefined
}): JSX.Element {
  return (
    <p role="status" class="said">
      {text !== '' && <span>{text}</span>}{' '}
      {text !== '' && onUndo && (
        <button type="button" class="link" onClick={onUndo}>
          {viewMessages.value.editor.undo}
        </button>
      )}
    </p>
  )
}
