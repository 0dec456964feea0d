import { type Signal, signal } from '@preact/signals'

const NAME = 'diana.token'

/** The admin token of this tab; empty where none is needed. */
export const token: Signal<string> = signal(sessionStorage.getItem(NAME) ?? '')

/** Whether the token of this tab may change anything; a gateway without tokens lets everybody. */
export const mayChange: Signal<boolean> = signal(true)

/** Whether the gateway asked for a token that this tab does not have. */
export const tokenIsAsked: Signal<boolean> = signal(false)

export function keepToken(text: string): void {
  sessionStorage.setItem(NAME, text)
  token.value = text
  tokenIsAsked.value = false
}

/** Forgets the token of this tab, and everything that was read with it. */
export function signOut(): void {
  sessionStorage.removeItem(NAME)
  location.reload()
}
