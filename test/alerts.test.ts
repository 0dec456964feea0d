import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}
interface RuleTests {
  readonly tests: readonly {
    readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[]
  }[]
}

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'deploy/prometheus')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const { groups } = parse(read('deploy/prometheus/diana-alerts.yaml')) as { groups: { rules: Alert[] }[] }
const alerts = groups.flatMap(({ rules }) => rules).filter(({ alert }) => alert !== undefined)
const names = alerts.map(({ alert }) => alert)
const testFiles = readdirSync(folder).filter(name => name.endsWith('.test.yaml'))

describe('the alerts', () => {
  it('the alerts are valid, and fire and do not fire as their unit tests say', { timeout: 120_000 }, () => {
    const promtool = (...args: string[]): string =>
      execFileSync('promtool', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
    expect(promtool('check', 'config', 'prometheus.yml')).toContain('is valid')
    expect(promtool('test', 'rules', ...testFiles).match(/SUCCESS/g)).toHaveLength(testFiles.length)
  })

  it('each alert has a unit test in which it fires, and one in which it does not', () => {
    const tests = testFiles
      .flatMap(name => (parse(read(`deploy/prometheus/${name}`)) as RuleTests).tests)
      .flatMap(test => test.alert_rule_test)
    const tested = (fires: boolean): string[] =>
      tests.filter(({ exp_alerts }) => exp_alerts.length > 0 === fires).map(({ alertname }) => alertname)
    expect(tested(true).sort()).toEqual(names.toSorted())
    expect(tested(false).sort()).toEqual(names.toSorted())
  })

  it('each alert has a severity, a summary, a description, and a section of docs/alerts.md', () => {
    const sections = [...read('docs/alerts.md').matchAll(/^### (\w+)$/gm)].map(match => match[1]!)
    expect(sections).toEqual(names)
    for (const { alert, labels, annotations } of alerts) {
      expect(['critical', 'warning']).toContain(labels.severity)
      expect(annotations.summary).toMatch(/\.$/)
      expect(annotations.description!.length).toBeGreaterThan(annotations.summary!.length)
      expect(annotations.runbook_url).toBe(`docs/alerts.md#${alert.toLowerCase()}`)
    }
  })
})
