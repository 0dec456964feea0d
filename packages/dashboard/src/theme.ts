import { effect, type Signal, signal } from '@preact/signals'

export const THEMES = ['auto', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const NAME = 'diana.theme'
const kept = localStorage.getItem(NAME)
const inks = new Map<string, string>()

/** The color scheme of the page; `auto` follows the system. */
export const theme: Signal<Theme> = signal(THEMES.find(name => name === kept) ?? 'auto')

/** A number that grows whenever the colors change, so that canvases are drawn again. */
export const repaint: Signal<number> = signal(0)

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem(NAME, chosen)
  theme.value = chosen
}

effect(() => {
  const chosen = theme.value
  if (chosen === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
  inks.clear()
  repaint.value = repaint.peek() + 1
})

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  inks.clear()
  repaint.value++
})

/** Returns a color of the style sheet, for canvases. */
export function ink(name: string): string {
  let colour = inks.get(name)
  if (colour === undefined) {
    colour = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
    inks.set(name, colour)
  }
  return colour
}
