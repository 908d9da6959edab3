// Colours for counts, from dark to bright: readable with red-green colour blindness. And the picture that says what they mean.

const RAMP = [[30, 34, 90], [49, 84, 160], [33, 144, 140], [94, 201, 98], [253, 231, 37]];
// The colour of the smallest count: lighter than the background of a picture.
const DIMMEST = 0.15;

// Behind the counts, in both themes.
export const BACKGROUND = "#10131f";

function colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  const mix = RAMP[low].map((from, part) => Math.round(from + (RAMP[low + 1][part] - from) * (at - low)));
  return `rgb(${mix.join(",")})`;
}

// The colour of a count, by its logarithm: 1 is the dimmest, `most` (at least 2) the brightest. Pure.
export function shade(found, most) {
  return colour(DIMMEST + (1 - DIMMEST) * (Math.log(Math.max(found, 1)) / Math.log(Math.max(most, 2))));
}

// What the colours mean: 1 on the left, the most on the right.
export function drawScale(canvas) {
  const pen = canvas.getContext("2d");
  for (let x = 0; x < canvas.width; x += 1) {
    pen.fillStyle = colour(DIMMEST + (1 - DIMMEST) * (x / canvas.width));
    pen.fillRect(x, 0, 1, canvas.height);
  }
}
