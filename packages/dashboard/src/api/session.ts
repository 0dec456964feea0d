import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { Session } from './generated.ts'

const NAME = 'diana.token'

/** The admin token of this tab; empty where none is needed. */
export const token: Signal<string> = signal(sessionStorage.getItem(NAME) ?? '')

/** Who looks at the page, as the gateway knows them. */
export const session: Signal<Session | undefined> = signal(undefined)

/** Whether this tab may change anything; a gateway without tokens lets everybody. */
export const mayChange: ReadonlySignal<boolean> = computed(() => (session.value?.role ?? 'operator') === 'operator')

/** Why the gateway does not let this tab in, if it says more than that a token is needed. */
export const refusal: Signal<string | undefined> = signal(undefined)

/** Whether the gateway asked for a token that this tab does not have. */
export const tokenIsAsked: Signal<boolean> = signal(false)

export function keepToken(text: string): void {
  sessionStorage.setItem(NAME, text)
  token.value = text
  refusal.value = undefined
  tokenIsAsked.value = false
}

/** Forgets the token of this tab, and everything that was read with it. */
export function signOut(): void {
  sessionStorage.removeItem(NAME)
  location.reload()
}
