import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { Session } from './generated.ts'

const NAME = 'diana.token'

/** The admin token of this tab; empty where none is needed. */
export const token: Signal<string> = signal(sessionStorage.getItem(NAME) ?? '')

/** The user of the page, as the gateway knows them. */
export const session: Signal<Session | undefined> = signal(undefined)

/** True if this tab may change something; a gateway without tokens lets every tab change everything. */
export const mayChange: ReadonlySignal<boolean> = computed(() => (session.value?.role ?? 'operator') === 'operator')

/** The reason why the gateway refuses this tab, if it is more than a missing token. */
export const refusal: Signal<string | undefined> = signal(undefined)

/** True if the gateway has asked for a token that this tab does not have. */
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
