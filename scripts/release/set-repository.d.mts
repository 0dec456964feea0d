export function setAddress(readme: string, url: string): string
