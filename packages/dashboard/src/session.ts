import { type Signal, signal } from '@preact/signals'

const NAME = 'diana.token'

/** The admin token of this tab; empty where none is needed. */
export const token: Signal<string> = signal(sessionStorage.getItem(NAME) ?? '')

/** Whether the gateway asked for a token that this tab does not have. */
export const tokenIsAsked: Signal<boolean> = signal(false)

export function keepToken(text: string): void {
  sessionStorage.setItem(NAME, text)
  token.value = text
  tokenIsAsked.value = false
}
