import { type Signal, signal } from '@preact/signals'

const query = matchMedia('(max-width: 719px)')

/** True if the page has a phone's width. */
export const isNarrow: Signal<boolean> = signal(query.matches)

query.addEventListener('change', () => {
  isNarrow.value = query.matches
})
