import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { keepToken, refusal, session, token } from '../api/session.ts'
import { messages } from '../i18n/index.ts'

/** Asks for the admin token, once per tab. */
export function SignIn(): JSX.Element {
  const { signIn: texts } = messages.value
  const [text, setText] = useState('')
  const wasWrong = token.value !== ''
  return (
    <form
      class="panel ask sign-in"
      onSubmit={event => {
        event.preventDefault()
        if (text !== '') keepToken(text)
      }}
    >
      <h2>{texts.title}</h2>
      {refusal.value !== undefined && <p role="alert">{refusal.value}</p>}
      {wasWrong && refusal.value === undefined && <p role="alert">{texts.wrong}</p>}
      {!wasWrong && session.value?.user !== undefined && (
        <p role="alert">
          {texts.ended}{' '}
          <button type="button" onClick={() => location.reload()}>
            {texts.reload}
          </button>
        </p>
      )}
      <label>
        <span>{texts.label}</span>
        <input type="password" autocomplete="off" value={text} onInput={event => setText(event.currentTarget.value)} />
      </label>
      <p class="hush">{texts.note}</p>
      <button type="submit">{texts.enter}</button>
    </form>
  )
}
