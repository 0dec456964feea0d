import type { JSX } from 'preact'
import { viewMessages } from '../i18n/views/index.ts'

const SHOWN = 120
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Shows the text of a caller: invisible characters are made visible, and a long text is cut. */
export function KeyText({ text }: { text: string }): JSX.Element {
  if (text === '') return <span class="key hush">{viewMessages.value.callers.everybody}</span>
  const visible = makeVisible(text)
  const isLong = visible.length > SHOWN
  return (
    <bdi class="key" title={isLong ? visible.slice(0, 1000) : undefined}>
      {isLong ? `${visible.slice(0, SHOWN)}… (${text.length})` : visible}
    </bdi>
  )
}

/** Writes control characters, and those that turn the direction of text, as \u{…}. */
export function makeVisible(text: string): string {
  return text.slice(0, 4000).replace(UNSEEN, character => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}
