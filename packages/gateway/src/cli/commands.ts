import type { Command } from './command.ts'

/** A command before it is loaded: what `diana help` shows of it. */
export interface CommandEntry {
  readonly name: string
  readonly summary: string
  load(): Promise<Command>
}

/** All commands. Each is loaded when it is called: `diana top` does not wait for the modules of the gateway. */
export const commands: readonly CommandEntry[] = [
  {
    name: 'start',
    summary: 'Starts the gateway in front of a service; with no rule file, in front of a demo.',
    load: async () => (await import('./start.ts')).start,
  },
  {
    name: 'serve',
    summary: 'Starts the decision server, which nginx, Caddy, Traefik, HAProxy and Envoy ask whether a call may pass.',
    load: async () => (await import('./serve.ts')).serve,
  },
  {
    name: 'check',
    summary: 'Validates rule files; exit 0 if all are good, or 1 with one line per mistake.',
    load: async () => (await import('./check.ts')).check,
  },
  {
    name: 'explain',
    summary: 'Shows which rules match a call, with its keys and numbers; counts nothing.',
    load: async () => (await import('./explain.ts')).explain,
  },
  {
    name: 'test',
    summary: 'Runs cases of calls and expected answers against rules, in virtual time; shows what no case reaches.',
    load: async () => (await import('./test.ts')).test,
  },
  {
    name: 'bound',
    summary: 'Shows the most that rules let pass in any second, minute, hour and day, and rules without effect.',
    load: async () => (await import('./bound.ts')).bound,
  },
  {
    name: 'replay',
    summary: 'Shows what rules would have done to the calls of access logs, and suggests limits.',
    load: async () => (await import('./replay.ts')).replayCommand,
  },
  {
    name: 'import',
    summary:
      "Turns limits of Envoy's reference rate limit service, of nginx and of express-rate-limit into a rule file.",
    load: async () => (await import('./import.ts')).importCommand,
  },
  {
    name: 'inspect',
    summary:
      'Shows what Redis knows of a caller of a rule: the limits, what is used, what is held, and when it expires.',
    load: async () => (await import('./inspect.ts')).inspect,
  },
  {
    name: 'top',
    summary: 'Shows what a running gateway allows and refuses, second by second.',
    load: async () => (await import('./top.ts')).top,
  },
]
