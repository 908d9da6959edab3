"""Compares a page with a picture in the repository, `dashboard/BROWSER/NAME.png`, which REWRITE=1 writes anew.

Pictures are kept at a third of their size, in 8 tones of each colour: small, and blind to how a machine smooths letters. A page differs if
more than a few cells of 4 by 4 points have another colour. The browser itself reads and compares the pictures.
"""

import base64
import os

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dashboard")
SCALE = 3
# Of 255, on the average of a cell.
TOLERANCE = 16
# Share of the cells.
DIFFERENT_MAX = 0.003

# A screenshot, made smaller, as a PNG. Browsers smooth what they make smaller each in its own way, Firefox hardly: so each point is computed here.
SHRINK = """async ([shot, scale]) => {
    const image = await createImageBitmap(await (await fetch(shot)).blob());
    const large = new OffscreenCanvas(image.width, image.height).getContext("2d");
    large.drawImage(image, 0, 0);
    const from = large.getImageData(0, 0, image.width, image.height).data;
    const canvas = new OffscreenCanvas(Math.floor(image.width / scale), Math.floor(image.height / scale));
    const pen = canvas.getContext("2d");
    const points = pen.createImageData(canvas.width, canvas.height);
    for (let y = 0; y < canvas.height; y += 1) for (let x = 0; x < canvas.width; x += 1) for (let part = 0; part < 4; part += 1) {
        let sum = 0;
        for (let row = y * scale; row < (y + 1) * scale; row += 1) for (let column = x * scale; column < (x + 1) * scale; column += 1) {
            sum += from[4 * (row * image.width + column) + part];
        }
        const mean = sum / (scale * scale);
        points.data[4 * (y * canvas.width + x) + part] = part < 3 ? Math.round(mean / 36) * 36 : mean;
    }
    pen.putImageData(points, 0, 0);
    const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
    return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
}"""

# The share of the cells that differ; 1 for pictures of different sizes.
DIFFERENCE = """async ([left, right, tolerance]) => {
    const read = async (picture) => {
        const image = await createImageBitmap(await (await fetch(picture)).blob());
        const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
        pen.drawImage(image, 0, 0);
        return pen.getImageData(0, 0, image.width, image.height);
    };
    const [a, b] = [await read(left), await read(right)];
    if (a.width !== b.width || a.height !== b.height) return 1;
    let [different, cells] = [0, 0];
    for (let top = 0; top < a.height; top += 4) for (let left = 0; left < a.width; left += 4) {
        const sums = [0, 0, 0];
        let points = 0;
        for (let y = top; y < Math.min(top + 4, a.height); y += 1) for (let x = left; x < Math.min(left + 4, a.width); x += 1) {
            const at = 4 * (y * a.width + x);
            for (let part = 0; part < 3; part += 1) sums[part] += a.data[at + part] - b.data[at + part];
            points += 1;
        }
        cells += 1;
        if (sums.some((sum) => Math.abs(sum) / points > tolerance)) different += 1;
    }
    return different / cells;
}"""


def url(png):
    return "data:image/png;base64," + base64.b64encode(png).decode()


class Album:
    """The pictures, compared on a page of its own: the dashboard's policy allows no data in requests."""

    def __init__(self, browser):
        self.page = browser.new_page()
        self.directory = os.path.join(HERE, browser.browser_type.name)
        self.wrong = []

    def compare(self, page, name):
        """Notes a page that does not look like its picture."""
        found = base64.b64decode(self.page.evaluate(SHRINK, [url(page.screenshot(animations="disabled")), SCALE]))
        path = os.path.join(self.directory, f"{name}.png")
        if os.environ.get("REWRITE") == "1":
            os.makedirs(self.directory, exist_ok=True)
            with open(path, "wb") as file:
                file.write(found)
            return
        with open(path, "rb") as file:
            expected = file.read()
        share = self.page.evaluate(DIFFERENCE, [url(expected), url(found), TOLERANCE])
        if share > DIFFERENT_MAX:
            shots = os.environ.get("SMOKE_SHOTS")
            if shots:
                with open(os.path.join(shots, f"{name}-found.png"), "wb") as file:
                    file.write(found)
            self.wrong.append(f"{name}: {share:.1%} of the picture")

    def check(self):
        self.page.close()
        hint = "SMOKE_SHOTS=DIRECTORY keeps what was found; if it is right, REWRITE=1 writes the pictures anew"
        assert self.wrong == [], f"{self.wrong} differ: {hint}"
