import { readdirSync, readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openBrowser } from './stage.ts'

const folder = new URL('../../docs/images/', import.meta.url)
const drawings = readdirSync(folder).filter(name => name.endsWith('.svg'))

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

/** The relative luminance of a color, by WCAG 2. */
function luminance(color: string): number {
  const parts = color.match(/\d+/g)!.slice(0, 3)
  const [red, green, blue] = parts.map(part => {
    const share = Number(part) / 255
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (high + 0.05) / (low + 0.05)
}

describe('the drawings in the docs', () => {
  it('the docs have drawings', () => {
    expect(drawings.length).toBeGreaterThan(8)
  })

  it.each(['light', 'dark'] as const)('every drawing is readable on %s paper', async colorScheme => {
    const page = await browser.newPage({ colorScheme })
    for (const name of drawings) {
      await page.setContent(readFileSync(new URL(name, folder), 'utf8'))
      const { paper, texts, marks, cut } = await page.evaluate(() => {
        const all = (selector: string): Element[] => [...document.querySelectorAll(selector)]
        const fills = (selector: string): string[] => all(selector).map(one => getComputedStyle(one).fill)
        const strokes = all('[class$="-line"]').map(one => getComputedStyle(one).stroke)
        return {
          paper: fills('.paper')[0]!,
          texts: [...new Set(fills('text, tspan'))],
          cut: all('text')
            .filter(one => {
              const { left, right } = one.getBoundingClientRect()
              const frame = document.querySelector('svg')!.getBoundingClientRect()
              return left < frame.left || right > frame.right
            })
            .map(one => one.textContent),
          marks: [...new Set([...fills('rect:not(.paper), circle'), ...strokes])],
        }
      })
      expect(luminance(paper) > 0.5, `${name}: the paper is ${colorScheme}`).toBe(colorScheme === 'light')
      expect([name, cut]).toEqual([name, []])
      expect(texts.length).toBeGreaterThan(0)
      for (const text of texts) expect([name, contrast(text, paper) >= 4.5, text]).toEqual([name, true, text])
      for (const mark of marks) expect([name, contrast(mark, paper) >= 3, mark]).toEqual([name, true, mark])
    }
    await page.close()
  })
})
